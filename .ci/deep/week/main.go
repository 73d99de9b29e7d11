// Command week rehearses a week of a fleet in simulated time: 1,000 models on 20 machines, each with
// its slice of the list. The real program, against hubtest, says how many requests a model costs
// that is new, current, has another card, or other weights; names and sizes are those of
// docs/fits.md. What is simulated is time: lines, kills, and the Hub's limits of requests.
package main

import (
	"container/heap"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/df11-convert/df11-convert/internal/hubtest"
)

// cost is what a model takes: requests of the API and of files.
type cost struct{ api, files float64 }

// The kinds of models in a week.
const (
	current = iota
	card
	weights
	fresh
	kinds
)

// counted asks the real program for the requests of each kind of a model with some shards.
func counted(program string, shards int64) (n [kinds]cost) {
	s := hubtest.New(hubtest.WithUser("hf_tester", hubtest.User{Name: "tester"}))
	defer s.Close()
	const size = 331_000
	s.AddModel("org/m", hubtest.NewLlama(1, hubtest.ModelOptions{Hidden: 64, Vocab: 512, Layers: 4, ShardBytes: size / shards}))
	dir, err := os.MkdirTemp("", "week")
	check(err)
	defer os.RemoveAll(dir)
	list := filepath.Join(dir, "list.yaml")
	check(os.WriteFile(list, []byte("models: [{source: org/m, repo-id: tester/m}]"), 0o600))
	run := func(kind int) {
		s.ResetLog()
		// so little disk that the result can't wait for its last commit, as that of a large model
		c := exec.Command(program, "batch", list, "--push", "--disk", "10MB")
		c.Env = append(os.Environ(), "HF_ENDPOINT="+s.URL, "HF_TOKEN=hf_tester", "HOME="+dir, "XDG_CACHE_HOME="+dir, "NO_PROXY=*")
		if out, err := c.CombinedOutput(); err != nil {
			log.Fatalf("%s\n%v", out, err)
		}
		for _, q := range s.Requests() {
			switch {
			case q.Host == hubtest.HostCDN:
			case strings.Contains(q.Path, "/resolve"):
				n[kind].files++
			default:
				n[kind].api++
			}
		}
	}
	run(fresh)
	run(current)
	s.Push("org/m", "main", map[string][]byte{"README.md": []byte("another card")})
	run(card)
	for path := range s.Files("org/m", "main") {
		if strings.HasSuffix(path, ".safetensors") {
			b, err := s.ReadFile("org/m", "main", path)
			check(err)
			b[len(b)-2] ^= 1
			s.Push("org/m", "main", map[string][]byte{path: b})
			break
		}
	}
	run(weights)
	return n
}

type model struct {
	bf16, df11 float64 // bytes
	shards     float64
}

// models are those of docs/fits.md, again and again: fine-tunes have the sizes of their bases.
func models(n int) (list []model) {
	page, err := os.ReadFile("docs/fits.md")
	check(err)
	row := regexp.MustCompile(`(?m)^\| [^|]+/[^|]+ \| ([0-9.]+) GB \| ([0-9.]+) GB \|`)
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		bf16, err := strconv.ParseFloat(m[1], 64)
		check(err)
		df11, err := strconv.ParseFloat(m[2], 64)
		check(err)
		list = append(list, model{bf16 * 1e9, df11 * 1e9, max(1, bf16/5)}) // shards of 5 GB are the usual ones
	}
	if len(list) < 10 {
		log.Fatal("docs/fits.md has no table")
	}
	for len(list) < n {
		list = append(list, list[len(list)-len(row.FindAllString(string(page), -1))])
	}
	return list[:n]
}

// step is one request, or a transfer, of a machine.
type step struct {
	api     bool
	request bool
	seconds float64
}

type machine struct {
	at    float64
	steps []step
}

type machines []*machine

func (m machines) Len() int           { return len(m) }
func (m machines) Less(i, j int) bool { return m[i].at < m[j].at }
func (m machines) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *machines) Push(x any)        { *m = append(*m, x.(*machine)) }
func (m *machines) Pop() any          { panic("unused") }

type account struct {
	name       string
	api, files float64 // in five minutes
}

// outcome is how a week went.
type outcome struct{ api, files, mostAPI, mostFiles, waited, hours, read, sent float64 }

const (
	window  = 300.0 // seconds
	latency = 0.1   // of a request
	line    = 125e6 // bytes per second in each direction, for each machine
)

// week runs the steps of all machines in the order of time. A request beyond the limit waits for the next window.
func week(all []*machine, a account) (o outcome) {
	queue := machines(all)
	heap.Init(&queue)
	used := map[[2]int]float64{}
	for live := len(all); live > 0; {
		m := queue[0]
		if len(m.steps) == 0 {
			o.hours = max(o.hours, m.at/3600)
			m.at = 1e18
			heap.Fix(&queue, 0)
			live--
			continue
		}
		s := m.steps[0]
		if s.request {
			of, limit := 0, a.files
			if s.api {
				of, limit = 1, a.api
			}
			k := [2]int{int(m.at / window), of}
			if used[k]+1 > limit {
				next := float64(k[0]+1) * window
				o.waited += next - m.at
				m.at = next
				heap.Fix(&queue, 0)
				continue
			}
			used[k]++
			if s.api {
				o.api, o.mostAPI = o.api+1, max(o.mostAPI, used[k])
			} else {
				o.files, o.mostFiles = o.files+1, max(o.mostFiles, used[k])
			}
		}
		m.at += s.seconds
		m.steps = m.steps[1:]
		heap.Fix(&queue, 0)
	}
	return o
}

// plan says how many models a week has, who converts them, and what changes.
type plan struct {
	models, machines, kills int
	one, four               [kinds]cost // of a model with that many shards
	all                     []model
}

// A share is how much of a list changes in a week.
type share struct {
	name                 string
	card, weights, fresh float64
}

// kind draws what happens to a model.
func (s share) kind(random *rand.Rand) int {
	switch p := random.Float64(); {
	case p < s.fresh:
		return fresh
	case p < s.weights:
		return weights
	case p < s.weights+s.card:
		return card
	}
	return current
}

// ask adds the requests for a model.
func (p *plan) ask(m *machine, kind int, shards float64) {
	at := func(a, b float64) int { return int(a + (b-a)/3*(shards-1) + 0.5) }
	api := at(p.one[kind].api, p.four[kind].api)
	for k := range api + at(p.one[kind].files, p.four[kind].files) {
		m.steps = append(m.steps, step{k < api, true, latency})
	}
}

// machine returns the steps of the i-th machine, and the bytes that it reads and sends. Each kill
// begins the batch again, which asks what every model of the slice is like.
func (p *plan) machine(i int, s share, random *rand.Rand) (m *machine, read, sent float64) {
	m = &machine{}
	slice, lives := (p.models+p.machines-1-i)/p.machines, 1+p.kills/p.machines
	for life := range lives {
		for range slice {
			p.ask(m, current, 1)
		}
		end := (life + 1) * slice / lives
		for k := life * slice / lives; k < end; k++ {
			x, kind := p.all[k*p.machines+i], s.kind(random)
			if kind == current {
				continue
			}
			p.ask(m, kind, x.shards)
			switch {
			case kind == card:
				x = model{}
			case k == end-1 && life+1 < lives:
				x.bf16 *= 1.05 // a kill costs less than that (docs/measured.md)
			}
			read, sent = read+x.bf16, sent+x.df11
			m.steps = append(m.steps, step{seconds: max(x.bf16, x.df11) / line})
		}
	}
	return m, read, sent
}

// rehearse prints how a week goes.
func (p *plan) rehearse(a account, s share) {
	random := rand.New(rand.NewPCG(1, 2))
	var fleet []*machine
	var read, sent float64
	for i := range p.machines {
		m, r, w := p.machine(i, s, random)
		fleet, read, sent = append(fleet, m), read+r, sent+w
	}
	o := week(fleet, a)
	limit := "lines"
	if o.waited/float64(p.machines)/3600 > o.hours/5 {
		limit = "requests"
	}
	fmt.Printf("| %s | %s | %.0f, %.0f | %.0f, %.0f | %.2f | %.1f TB, %.1f TB | %s |\n", a.name, s.name,
		o.api, o.mostAPI, o.files, o.mostFiles, o.hours, read/1e12, sent/1e12, limit)
}

func main() {
	p := &plan{}
	flag.IntVar(&p.models, "models", 1000, "models in the list")
	flag.IntVar(&p.machines, "machines", 20, "machines that share it")
	flag.IntVar(&p.kills, "kills", 40, "kills in a week; each begins a slice again")
	flag.Parse()
	dir, err := os.MkdirTemp("", "week")
	check(err)
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "df11-convert")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/df11-convert").CombinedOutput(); err != nil {
		log.Fatalf("%s\n%v", out, err)
	}
	p.one, p.four, p.all = counted(program, 1), counted(program, 4), models(p.models)
	fmt.Println("requests of a model with 1 and 4 shards, API and files:")
	for kind, name := range []string{"current", "another card", "other weights", "new"} {
		one, four := p.one[kind], p.four[kind]
		fmt.Printf("  %-14s %2.0f + %2.0f   %2.0f + %2.0f\n", name, one.api, one.files, four.api, four.files)
	}
	for _, a := range []account{{"free", 1000, 5000}, {"PRO", 2500, 12000}} {
		for _, s := range []share{{"nothing", 0, 0, 0}, {"5% of cards, 1% of weights", 0.05, 0.01, 0}, {"all are new", 0, 0, 1}} {
			p.rehearse(a, s)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
