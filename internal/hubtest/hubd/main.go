// Command hubd serves a folder as a Hugging Face Hub, for trying out clients
// without network or account. It is no storage to rely on: branches other than
// main and the history live in memory only.
//
// Repos are DIR/<namespace>/<name>/; commits to main appear there file by file,
// each by rename. Every non-empty token is accepted. The program prints
// "READY http://HOST:PORT" when it answers and ends cleanly on SIGINT and
// SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "hubd:", err)
		}
		os.Exit(1)
	}
}

type options struct {
	addr, data string
	hub        []hubtest.Option
	faults     []hubtest.Fault
	models     []string
	logins     map[string]time.Duration // by the folder that is HF_HOME
	log        bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	fs := flag.NewFlagSet("hubd", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.addr, "addr", "127.0.0.1:0", "address to listen at; port 0 takes a free one")
	fs.StringVar(&o.data, "data", "", "folder of the repos, made when it does not exist")
	multipart := fs.Int64("multipart-from", 64<<20,
		"size in bytes from which uploads are multipart")
	chunk := fs.Int64("chunk-size", 16_000_000, "size in bytes of a part")
	pageSize := fs.Int("page-size", 1000, "entries on one page of a tree")
	up := fs.Int64("up", 0, "link speed of uploads in bytes per second, 0 is no limit")
	fs.Func("model",
		"`NS/NAME`: also serve a generated Llama-shaped model of 0.6 MB in several files; repeatable", func(name string) error {
			o.models = append(o.models, name)
			return nil
		})
	fs.Func("publisher",
		"`RESOURCE=OWNER/REPO`: trust jobs of this GitHub repository, and no other token; repeatable", func(s string) error {
			resource, github, ok := strings.Cut(s, "=")
			if !ok {
				return errors.New("not RESOURCE=OWNER/REPO")
			}
			o.hub = append(o.hub, hubtest.WithPublisher(resource, github))
			return nil
		})
	o.logins = map[string]time.Duration{}
	fs.Func("login",
		"`HOME=DURATION`: log tester in as hf auth login does, in a folder for HF_HOME, with a token that lasts so long; "+
			"no other token counts then; repeatable", func(s string) error {
			home, lasts, _ := strings.Cut(s, "=")
			d, err := time.ParseDuration(lasts)
			o.logins[home] = d
			o.hub = append(o.hub, hubtest.WithUser("hf_of_no_one", hubtest.User{Name: "nobody"}))
			return err
		})
	fs.BoolFunc("xet-hashes",
		"show xetHash in trees, as the copy route needs it, and X-Xet-Hash on downloads", func(string) error {
			o.hub = append(o.hub, hubtest.WithXetHashes())
			return nil
		})
	fs.Func("ways", "`SERVER`: speak as another server does: kohakuhub, git or mirror",
		func(name string) error {
			ways, known := hubtest.Servers[name]
			if !known {
				return errors.New("no such server")
			}
			o.hub = append(o.hub, hubtest.WithWays(ways))
			return nil
		})
	fs.BoolVar(&o.log, "log", false, "print each request to stderr when the program ends")
	fs.Func("fault", "`NAME[:N|:always]`: spoil the first N matching answers, or all; repeatable",
		func(spec string) error {
			f, err := hubtest.ParseFault(spec)
			o.faults = append(o.faults, f)
			return err
		})
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: hubd -data DIR [flags]")
		fs.PrintDefaults()
		fmt.Fprintln(stderr, "\nfaults:")
		for _, name := range hubtest.FaultNames() {
			fmt.Fprintf(stderr, "  %-20s %s\n", name, hubtest.DescribeFault(name))
		}
	}
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if o.data == "" || fs.NArg() > 0 || *chunk < 1 || *pageSize < 1 {
		fs.Usage()
		return o, errors.New("-data DIR is needed, and nothing after the flags")
	}
	o.hub = append(o.hub, hubtest.WithPushDir(o.data), hubtest.WithMultipart(*multipart, *chunk),
		hubtest.WithPageSize(*pageSize),
		hubtest.WithLinkSpeed(0, *up))
	return o, nil
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.data, 0o755); err != nil {
		return err
	}
	s, err := hubtest.Listen(o.addr, o.hub...)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.AddDir(o.data); err != nil {
		return err
	}
	for home, lasts := range o.logins {
		if err := logIn(s, home, lasts); err != nil {
			return err
		}
	}
	for i, name := range o.models {
		s.AddModel(name, hubtest.NewLlama(uint64(i),
			hubtest.ModelOptions{ShardBytes: 200_000, ExtraFiles: true}))
	}
	s.Inject(o.faults...)
	if _, err := fmt.Fprintln(stdout, "READY", s.URL); err != nil {
		return err
	}
	<-ctx.Done()
	s.Close()
	report(s, o.log, stderr)
	return nil
}

// logIn writes a login in the form of huggingface_hub's _save_token: the token alone, and next to it
// all tokens with their names.
func logIn(s *hubtest.Server, home string, lasts time.Duration) error {
	token, refresh := s.Login(hubtest.User{Name: "tester", All: true}, lasts)
	stored := fmt.Sprintf("[other]\nhf_token = hf_other\n\n[tester-oauth]\nhf_token = %s\n"+
		"refresh_token = %s\nexpires_at = %d\n\n", token, refresh, time.Now().Add(lasts).Unix())
	err := os.MkdirAll(home, 0o700)
	for name, text := range map[string]string{"token": token, "stored_tokens": stored} {
		err = errors.Join(err, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	return err
}

// report prints the mistakes of the clients and, if asked, all their requests.
func report(s *hubtest.Server, all bool, w io.Writer) {
	for _, q := range s.Requests() {
		if all {
			fmt.Fprintf(w, "%4d %s %-6s %3d %s %s up %d down %d %s\n", q.Seq, q.Host, q.Method,
				q.Status,
				q.Path, q.Header.Get("Range"), q.Received, q.Sent, q.Fault)
		}
	}
	if v := s.Violations(); len(v) > 0 {
		fmt.Fprintln(w, "violations:\n  "+strings.Join(v, "\n  "))
	}
}
