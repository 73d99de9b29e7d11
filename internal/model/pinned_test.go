package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/df11-convert/df11-convert/internal/plan"
	"github.com/df11-convert/df11-convert/internal/testing/world"
)

// swaps are ways in which someone may exchange a file of a source for a secret of the same size.
var swaps = map[string]func(t *testing.T, dir, file string, secret []byte){
	"a link outside": func(t *testing.T, dir, file string, secret []byte) {
		world.Write(t, filepath.Join(filepath.Dir(dir), "outside", "secret"), secret)
		replace(t, file, func(name string) error { return os.Symlink("../../outside/secret", name) })
	},
	"a link to a hidden file": func(t *testing.T, dir, file string, secret []byte) {
		world.Write(t, filepath.Join(dir, ".env"), secret)
		replace(t, file, func(name string) error { return os.Symlink(filepath.Join(dir, ".env"), name) })
	},
	"a link to an ignored file": func(t *testing.T, dir, file string, secret []byte) {
		world.Write(t, filepath.Join(dir, "private.txt"), secret)
		replace(t, file, func(name string) error { return os.Symlink(filepath.Join(dir, "private.txt"), name) })
	},
	"a hard link": func(t *testing.T, dir, file string, secret []byte) {
		world.Write(t, filepath.Join(dir, ".env"), secret)
		replace(t, file, func(name string) error { return os.Link(filepath.Join(dir, ".env"), name) })
	},
	"another file": func(t *testing.T, _, file string, secret []byte) {
		replace(t, file, func(name string) error { return os.WriteFile(name, secret, 0o600) })
	},
	"its folder": func(t *testing.T, dir, file string, secret []byte) {
		outside := filepath.Join(filepath.Dir(dir), "elsewhere")
		world.Write(t, filepath.Join(outside, filepath.Base(file)), secret)
		must(t, os.Rename(filepath.Dir(file), filepath.Dir(file)+"-old"))
		must(t, os.Symlink(outside, filepath.Dir(file)))
	},
	"other bytes": func(t *testing.T, _, file string, secret []byte) {
		st, err := os.Stat(file)
		must(t, err)
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteAt(secret, 0)
		must(t, errors.Join(err, f.Close()))
		if st.Size() <= MaxDisclosed { // not even the time shows it
			must(t, os.Chtimes(file, st.ModTime(), st.ModTime()))
			return
		}
		later := time.Now().Add(time.Hour)
		must(t, os.Chtimes(file, later, later))
	},
}

func replace(t *testing.T, file string, with func(name string) error) {
	t.Helper()
	must(t, os.Remove(file))
	must(t, with(file))
}

// TestCopiesStayAsTheyWereChecked checks for every way to exchange a file, before it's checked,
// while it's looked at, and afterward, that a copy never has other bytes than the file had when it
// was checked.
func TestCopiesStayAsTheyWereChecked(t *testing.T) {
	const copied = "sub/terms.txt"
	for _, large := range []bool{false, true} {
		for name, swap := range swaps {
			for _, when := range []string{"before the check", "before a look", "after a look", "only for a look", "with many files"} {
				if when == "with many files" && !large {
					continue
				}
				t.Run(fmt.Sprint(name, " ", when, " large ", large), func(t *testing.T) {
					above, _ := shards(t)
					dir := filepath.Join(t.TempDir(), "model")
					must(t, os.CopyFS(dir, os.DirFS(above)))
					was := []byte("license: " + strings.Repeat("x", 100))
					if large {
						was = append(was, make([]byte, MaxDisclosed)...)
					}
					secret := bytes.Repeat([]byte("s"), len(was))
					file := filepath.Join(dir, filepath.FromSlash(copied))
					world.WriteAll(t, dir, map[string][]byte{copied: was, ".gitignore": []byte("private.txt\n")})
					opt := plan.Options{Include: []string{copied}}
					if when == "with many files" {
						opt.Include = append(opt.Include, "many")
						for i := range maxOpen {
							name := filepath.Join(dir, "many", fmt.Sprint(i))
							world.Write(t, name, "")
							must(t, os.Truncate(name, MaxDisclosed+1))
						}
					}
					src, m, err := OpenLocal(t.Context(), dir, opt, 0)
					must(t, err)
					defer src.Close()
					p, err := plan.New(t.Context(), m.Listing, opt)
					must(t, err)
					if when == "before the check" {
						swap(t, dir, file, secret)
					}
					err = m.CheckCopies(p)
					var refused *plan.RefusedError
					var changed *ChangedError
					if when == "before the check" && name != "another file" && name != "other bytes" && name != "a hard link" {
						if !errors.As(err, &refused) && !errors.As(err, &changed) {
							t.Errorf("the check says %v", err)
						}
						return
					}
					if must(t, err); when == "before the check" {
						return // that's the file then
					}
					old := filepath.Join(above, "old")
					switch when {
					case "before a look", "with many files":
						swap(t, dir, file, secret)
						m.Discloses(p)
					case "only for a look":
						must(t, os.CopyFS(old, os.DirFS(filepath.Dir(file))))
						swap(t, dir, file, secret)
						m.Discloses(p)
						must(t, os.RemoveAll(filepath.Dir(file)))
						must(t, os.CopyFS(filepath.Dir(file), os.DirFS(old)))
					default:
						m.Discloses(p)
						swap(t, dir, file, secret)
					}
					got, err := copyOf(t, src, m, copied)
					if err == nil && !bytes.Equal(got, was) {
						t.Errorf("a copy has other bytes: %.20q", got)
					}
					if err == nil && when == "only for a look" && !large {
						t.Error("a copy of what no one has looked at")
					}
					if err != nil && !errors.As(err, &changed) && !errors.Is(err, fs.ErrNotExist) {
						t.Error(err)
					}
				})
			}
		}
	}
}

// copyOf reads a file as a conversion does at its end.
func copyOf(t *testing.T, src Source, m *Model, name string) ([]byte, error) {
	t.Helper()
	r, err := src.OpenFile(t.Context(), name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return b, m.CheckCompared(name, hex.EncodeToString(sum[:]))
}

// TestHardLinksToPrivateFiles checks for each way to keep a file back, in hidden folders too, that
// a result gets no other name of that file, unless the caller includes that name.
func TestHardLinksToPrivateFiles(t *testing.T) {
	for private, kept := range map[string]bool{
		".env": true, ".ssh/id_rsa": true, "data/.cache/token": true, "secret.txt": true, "runs/log/keys.json": true, "sub/draft.md": true,
		"words.json": false, "data/plain.txt": false, "../outside": false, "result/notes.txt": false,
	} {
		for _, name := range []string{"vocab.json", "LICENSE"} {
			for _, include := range []string{"", name} {
				source, _ := shards(t)
				dir := filepath.Join(t.TempDir(), "model")
				must(t, os.CopyFS(dir, os.DirFS(source)))
				world.WriteAll(t, dir, map[string][]byte{private: []byte("{}"), ".gitignore": []byte("secret.txt\nruns/\n"), "sub/.gitignore": []byte("draft.*\n"),
					"result/df11-manifest.json": []byte("{}")})
				_ = os.Remove(filepath.Join(dir, name))
				if err := os.Link(filepath.Join(dir, filepath.FromSlash(private)), filepath.Join(dir, name)); err != nil {
					t.Skip("no hard links here:", err)
				}
				opt := plan.Options{}
				if include != "" {
					opt.Include = []string{include}
				}
				src, m, err := OpenLocal(t.Context(), dir, opt, 0)
				must(t, err)
				p, err := plan.New(t.Context(), m.Listing, opt)
				must(t, err)
				err = m.CheckCopies(p)
				var refused *plan.RefusedError
				if want := kept && include == ""; errors.As(err, &refused) != want || err != nil && (!want || strings.Contains(err.Error(), private)) {
					t.Errorf("%s is %s, included: %v: %v", name, private, include != "", err)
				}
				must(t, src.Close())
			}
		}
	}
}
