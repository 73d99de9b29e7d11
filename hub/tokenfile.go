package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/semaphore"

	"github.com/df11-convert/df11-convert/internal/disk"
	"github.com/df11-convert/df11-convert/internal/hint"
)

// A tokenFile serves the token that `hf auth login` has stored. Since huggingface_hub 1.21, such a
// token ends after 30 days, and Python renews it in its last day:
// https://github.com/huggingface/huggingface_hub/pull/4354. A tokenFile does the same, under the
// same lock, and changes the same two files. It serves one login for as long as it can, so that a
// run doesn't change its user: it reads the files again only when its token ends, or when the Hub
// refuses it.
type tokenFile struct {
	path string              // of the token; the stored tokens lie next to it
	lock *semaphore.Weighted // of one; guards what follows

	now    string    // the token in use
	look   time.Time // when to look at the files again
	last   storedToken
	reason string // why it couldn't be renewed
	lost   bool   // for good
	// the token that the files have instead of now, which couldn't be stored; "" if it could
	instead string
}

const (
	// lastDay is when a token is renewed: as in Python, so both do it at the same time.
	lastDay = 24 * time.Hour
	// lookAgain is how long to leave the files alone if nothing can be renewed now, as in Python.
	lookAgain = 5 * time.Minute
	// lockPatience is how long to wait for Python's lock.
	lockPatience = 30 * time.Second
	// renewTime is how long a renewal may take. Once it has begun, it isn't canceled: the Hub may
	// have taken the old refresh token back.
	renewTime = 30 * time.Second
	// loginClient is the public OAuth client ID of huggingface_hub, which has no secret.
	loginClient = "26be6b09-91c5-47da-9861-d2d2bb7a7e36"
	// maxTokens limits the files, in bytes.
	maxTokens = 1 << 20
)

// stored returns the path of the stored tokens.
func (f *tokenFile) stored() string { return storedNextTo(f.path) }

func storedNextTo(token string) string { return filepath.Join(filepath.Dir(token), "stored_tokens") }

// token returns the token to send, and renews it if it ends within a day. If that fails, it returns
// the old one, because it may still be good.
func (f *tokenFile) token(ctx context.Context, t *transport) (string, error) {
	if err := takePlace(ctx, f.lock); err != nil {
		return "", err
	}
	defer f.lock.Release(1)
	now := t.opt.Clock.Now()
	if now.Before(f.look) {
		return f.now, nil
	}
	f.look = now.Add(lookAgain)
	if f.instead != "" {
		f.storeAgain(ctx, t)
	}
	x, known := f.login(ctx)
	switch {
	case !known: // another program may have renewed it
		if other, err := readToken(ctx, f.path); err == nil && other != "" && f.last.name != "" {
			f.adopt(other, findStored(ctx, f.stored(), other))
		}
	case f.lost, x.refresh == "", x.expires.IsZero():
	case x.expires.Add(-lastDay).After(now):
		if f.last = x; f.instead == "" {
			f.look = x.expires.Add(-lastDay)
		}
	default:
		f.last = x
		f.renew(ctx, t, x)
	}
	return f.now, context.Cause(ctx)
}

// login returns the login in use: as it was renewed, or as the files have it.
func (f *tokenFile) login(ctx context.Context) (x storedToken, known bool) {
	if f.instead != "" {
		return f.last, true
	}
	x = findStored(ctx, f.stored(), f.now)
	return x, x.name != ""
}

// adopt makes a token of the files the one in use. x is its section.
func (f *tokenFile) adopt(token string, x storedToken) {
	f.now, f.last, f.reason, f.lost, f.instead = token, x, "", false, ""
}

// refused looks for another token after the Hub has refused one, or says what to do.
func (f *tokenFile) refused(ctx context.Context, t *transport, token string) (again bool,
	step hint.Hint) {
	if takePlace(ctx, f.lock) != nil {
		return false, hint.Hint{}
	}
	defer f.lock.Release(1)
	if f.now != token { // meanwhile
		return true, hint.Hint{}
	}
	if other, err := readToken(ctx, f.path); err == nil && other != "" && other != token &&
		other != f.instead {
		t.opt.Log.Info("the hub refuses the token, and its file has another one", "file", f.path)
		f.adopt(other, findStored(ctx, f.stored(), other))
		f.look = time.Time{}
		return true, hint.Hint{}
	}
	x, known := f.login(ctx)
	if !known || x.refresh == "" {
		return false, hint.Hint{}
	}
	if !f.lost {
		f.renew(ctx, t, x)
	}
	if f.now != token {
		return true, hint.Hint{}
	}
	when := "is no longer valid"
	if end := x.expires; !end.IsZero() && end.Before(t.opt.Clock.Now()) {
		when = "expired on " + end.UTC().Format(time.DateOnly)
	}
	return false, hint.TokenExpired.With("token", t.opt.TokenSource, "when", when, "reason",
		cmp.Or(f.reason, "can't be renewed"))
}

// renew exchanges a token for a new one, which is then in use, and stores it. If it can't, it keeps
// the old one and the reason. It asks for nothing before it can store the answer, because the Hub
// may take the old refresh token back with it.
func (f *tokenFile) renew(ctx context.Context, t *transport, x storedToken) {
	err := f.locked(ctx, func() error {
		file := f.stored()
		list := readStored(ctx, file)
		y, known := list.read(x.name)
		if !known {
			return errors.New("its entry in " + file + " is gone")
		}
		old := cmp.Or(f.instead, x.token)
		if y.token != old { // another program was faster
			f.adopt(y.token, y)
			return nil
		}
		y = x
		drafts, err := openDrafts(file, f.path)
		if err != nil {
			return err
		}
		defer drafts.remove()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
		defer cancel()
		got, err := f.exchange(ctx, t, y.refresh)
		if err != nil {
			return err
		}
		y.token, y.refresh = got.Token, cmp.Or(got.Refresh, y.refresh)
		y.expires = time.Time{}
		if got.Seconds > 0 {
			y.expires = t.opt.Clock.Now().Add(time.Duration(got.Seconds) * time.Second)
		}
		f.now, f.last, f.reason, f.lost, f.instead = y.token, y, "", false, old
		f.look = t.opt.Clock.Now().Add(lookAgain)
		t.opt.Log.Info("the token of hf auth login is renewed", "name", y.name)
		f.store(ctx, t, list, drafts)
		if next := y.expires.Add(-lastDay); f.instead == "" && next.After(f.look) {
			f.look = next
		}
		return nil
	})
	if err != nil {
		// RFC 6749, section 5.2: invalid_grant and the other refusals are 400 or 401
		s := errorOf(err).Status
		f.lost = s == http.StatusBadRequest || s == http.StatusUnauthorized
		f.reason = "can't be renewed: " + oneLine(err.Error())
		t.opt.Log.Warn("can't renew the token of hf auth login", "file", f.path, "err", err)
	}
}

// store stores the login in use. If it can't, the token stays in use, and the next look at the
// files stores it.
func (f *tokenFile) store(ctx context.Context, t *transport, list *storedTokens,
	drafts drafts) {
	list.set(f.last)
	err := drafts[0].replace(ctx, t.opt.Clock, list.String())
	active, readErr := tokenIn(ctx, f.path)
	if err = cmp.Or(err, readErr); err == nil && active == f.instead {
		err = drafts[1].replace(ctx, t.opt.Clock, f.now)
	}
	if err != nil {
		t.opt.Log.Warn("can't store the new token of hf auth login, which is only in use here",
			"file", f.path, "err", err)
		return
	}
	f.instead = ""
}

// storeAgain stores the login in use, unless the files have another one by now.
func (f *tokenFile) storeAgain(ctx context.Context, t *transport) {
	err := f.locked(ctx, func() error {
		list := readStored(ctx, f.stored())
		y, known := list.read(f.last.name)
		if !known || y.token != f.instead && y.token != f.now {
			f.instead = ""
			return nil
		}
		drafts, err := openDrafts(f.stored(), f.path)
		if err != nil {
			return err
		}
		defer drafts.remove()
		f.store(ctx, t, list, drafts)
		return nil
	})
	if err != nil {
		t.opt.Log.Warn("can't store the new token of hf auth login", "file", f.path, "err", err)
	}
}

// newLogin is the answer to a renewal.
type newLogin struct {
	Token   string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Seconds int64  `json:"expires_in"`
}

// exchange asks the Hub for a new token, as huggingface_hub's _oauth_device.py does.
func (f *tokenFile) exchange(ctx context.Context, t *transport, refresh string) (got newLogin,
	err error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh},
		"client_id": {loginClient}}.Encode()
	r := sendRequest("renew the token", "", http.MethodPost, t.endpoint.String()+"/oauth/token", nil)
	r.token, r.header = false, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	r.body, r.size = func() io.Reader { return strings.NewReader(form) }, int64(len(form))
	if _, err = t.callOnce(ctx, r, &got); err != nil { // no repeat: the first may have counted
		return got, err
	}
	if got.Token == "" || !sendable(got.Token) || strings.ContainsAny(got.Refresh, "\r\n") {
		return got, fmt.Errorf("%w: the answer holds no token", ErrNotHub)
	}
	return got, nil
}

// locked calls change under the lock that huggingface_hub takes.
func (f *tokenFile) locked(ctx context.Context, change func() error) error {
	return underLock(ctx, f.stored(), os.O_CREATE|os.O_RDWR, change)
}

// underLock calls do under the lock of the stored tokens, which is opened with flag.
func underLock(ctx context.Context, stored string, flag int, do func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience,
		errors.New("another program holds the lock of "+stored))
	defer cancel()
	l := flock.New(stored+".lock", flock.SetFlag(flag), flock.SetPermissions(0o664))
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer l.Close()
	return do()
}

// inWhole calls read, which reports whether it found what it looks for. If not, it calls it again
// under the lock, if there's one: huggingface_hub empties both files before it writes them
// (_write_secret in utils/_auth.py of 2.4.0), and holds the lock meanwhile.
func inWhole(ctx context.Context, stored string, read func() bool) {
	if read() {
		return
	}
	_ = underLock(ctx, stored, os.O_RDWR, func() error { read(); return nil })
}

// findStored returns the section of the stored tokens that has the token; the zero one if none
// does.
func findStored(ctx context.Context, stored, token string) (x storedToken) {
	inWhole(ctx, stored, func() (found bool) {
		x, found = readStored(ctx, stored).find(token)
		return found
	})
	return x
}

// readStored reads the stored tokens; none if they can't be read.
func readStored(ctx context.Context, path string) *storedTokens {
	data, _ := disk.ReadInput(ctx, path, maxTokens)
	return parseStored(string(data))
}

// errNoToken is a file that holds something else than a token.
var errNoToken = errors.New("it holds characters that no token has")

// readToken reads the token file; "" if there's none.
func readToken(ctx context.Context, path string) (token string, err error) {
	inWhole(ctx, storedNextTo(path), func() bool {
		token, err = tokenIn(ctx, path)
		return token != "" || err != nil
	})
	return token, err
}

// tokenIn reads the token file, which may be empty because another program is writing it.
func tokenIn(ctx context.Context, path string) (string, error) {
	data, err := disk.ReadInput(ctx, path, 64<<10)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read token file: %w", err)
	}
	token := cleanToken(string(data))
	if !sendable(token) {
		return "", hint.On(&fs.PathError{Op: "read the token in", Path: path, Err: errNoToken}, hint.BadTokenFile.With("file", path))
	}
	return token, nil
}
