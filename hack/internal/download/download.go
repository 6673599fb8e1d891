// SPDX-License-Identifier: Apache-2.0

// Package download gets the programs of the embedded cluster from what their publishers release, verified by pinned SHA-256
// sums. What can be downloaded, and why the rest is built, is in releases.yaml; the sums are in pins.yaml; README.md explains both.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// maxFile is more than any file of a release, and any program in it, has.
	maxFile = 512 << 20
	// parallel is how many files of a release arrive at a time.
	parallel = 3
	// originFile lists in a tool's folder where its programs come from.
	originFile = ".origin"
)

// A Downloader gets tools from their publishers or from a mirror. FromEnvironment makes one. It remembers which sites answer, and
// several goroutines may use it at once.
type Downloader struct {
	mode                       Mode
	releases                   releases
	pins                       Pins
	mirror                     *url.URL
	client                     *http.Client
	probeTimeout, stallTimeout time.Duration
	// limit is how many bytes a file, and each program in it, may have.
	limit int64

	mu    sync.Mutex
	sites map[string]*site
	said  map[string]bool
}

// A Request names a tool of build.Tools in a version, and an architecture as Go names it.
type Request struct {
	Tool, Version, Arch string
	// Received, if not nil, counts bytes as they arrive.
	Received *atomic.Int64
	// Say, if not nil, prints a line for people.
	Say func(format string, args ...any)
}

func (r Request) sayf(format string, args ...any) {
	if r.Say != nil {
		r.Say(format, args...)
	}
}

// Mode is where programs come from.
func (d *Downloader) Mode() Mode { return d.mode }

// Downloaded reports whether Fetch made a tool's folder.
func Downloaded(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, originFile))
	return err == nil
}

// Ensure makes the folder of a tool as the mode demands. It returns false when the tool must be built, and then prints one line with
// the reason. It prints nothing for tools that are not published, and only once that sites do not answer.
func (d *Downloader) Ensure(ctx context.Context, r Request, dir string) (bool, error) {
	if d.mode == ModeBuild {
		return false, nil
	}
	err := d.Fetch(ctx, r, dir)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, ErrNotPublished):
		return false, nil
	case !isRemote(err):
		return false, err // a build would fail for the same reason, such as a full disk or an interruption
	case d.mode == ModeDownload:
		return false, fmt.Errorf("%w: %s", err, remedy(err))
	case errors.Is(err, ErrNotPinned):
		r.sayf("%v: it is built from source; on a machine with internet, `go -C hack run ./releases pin` enables the download", err)
	case errors.Is(err, ErrUnreachable):
		d.oncef(r, ErrUnreachable.Error(), "%v: programs are built from source; %s names a mirror", err, MirrorVariable)
	default:
		r.sayf("WARNING: %v: it is built from source instead", err)
	}
	return false, nil
}

// oncef prints a line unless it was printed before.
func (d *Downloader) oncef(r Request, key, format string, args ...any) {
	d.mu.Lock()
	repeated := d.said[key]
	if d.said == nil {
		d.said = map[string]bool{}
	}
	d.said[key] = true
	d.mu.Unlock()
	if !repeated {
		r.sayf(format, args...)
	}
}

// isRemote reports whether an error is about a release and its site, not about this machine.
func isRemote(err error) bool {
	var sum *ChecksumError
	return errors.As(err, &sum) || slices.ContainsFunc([]error{ErrNotPinned, ErrUnreachable, ErrNotServed, ErrBroken, ErrContent},
		func(kind error) bool { return errors.Is(err, kind) })
}

func remedy(err error) string {
	build := fmt.Sprintf("or set %s=%s to build it", ModeVariable, ModeAuto)
	var sum *ChecksumError
	switch {
	case errors.As(err, &sum):
		return "do not use this file; check the mirror or the proxy on the way, " + build
	case errors.Is(err, ErrNotPinned):
		return "run `go -C hack run ./releases pin` on a machine with internet, " + build
	case errors.Is(err, ErrUnreachable), errors.Is(err, ErrBroken):
		return fmt.Sprintf("check the network and its proxy, name a mirror in %s, %s", MirrorVariable, build)
	}
	return "check the mirror or the publisher's site, " + build
}

// Fetch makes dir with the programs of a tool. It tries once, and dir appears at once and whole or not at all.
func (d *Downloader) Fetch(ctx context.Context, r Request, dir string) error {
	if err := d.fetch(ctx, r, dir); err != nil {
		return fmt.Errorf("cannot download %s %s: %w", r.Tool, r.Version, err)
	}
	return nil
}

func (d *Downloader) fetch(ctx context.Context, r Request, dir string) error {
	files, err := d.releases.files(r.Tool, r.Version, r.Arch)
	if err != nil {
		return err
	}
	sums := make([]string, len(files))
	for i, f := range files {
		// This comes first because a missing pin does not matter without internet.
		if err := d.reachFile(ctx, f); err != nil {
			return err
		}
		if sums[i], err = d.expect(ctx, r, f); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return fmt.Errorf("cannot create the cache of programs: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+r.Tool+"-")
	if err != nil {
		return fmt.Errorf("cannot create the cache of programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	programs := filepath.Join(tmp, "programs")
	if err := os.Mkdir(programs, 0o750); err != nil {
		return fmt.Errorf("cannot create the cache of programs: %w", err)
	}

	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var origin strings.Builder
	for i, f := range files {
		_, _ = fmt.Fprintf(&origin, "%s sha256:%s\n", f.URL, sums[i])
		group.Go(func() error { return d.file(groupCtx, f, sums[i], tmp, programs, r.Received) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(programs, originFile), []byte(origin.String()), 0o600); err != nil {
		return fmt.Errorf("cannot keep the origin of the programs: %w", err)
	}
	// Another process may have made the folder meanwhile.
	if err := os.Rename(programs, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot keep the programs: %w", err)
	}
	return nil
}

func (d *Downloader) reachFile(ctx context.Context, f File) error {
	address, err := d.locate(f.URL)
	if err != nil {
		return err
	}
	return d.reach(ctx, address)
}

// expect returns the checksum that a file must have. In ModeDownload the publisher's list replaces a pin that is missing.
func (d *Downloader) expect(ctx context.Context, r Request, f File) (string, error) {
	if sum := d.pins.sum(f.URL); sum != "" {
		return sum, nil
	}
	if d.mode != ModeDownload {
		return "", fmt.Errorf("%w for %s", ErrNotPinned, f.URL)
	}
	sum, source, err := d.publishedSum(ctx, f)
	if err != nil {
		return "", err
	}
	r.sayf("%s is not pinned: it is verified with the publisher's own list, %s", f.URL, source)
	return sum, nil
}

// file downloads one file below tmp, verifies it, and puts its programs into a folder.
func (d *Downloader) file(ctx context.Context, f File, want, tmp, programs string, received *atomic.Int64) error {
	address, err := d.locate(f.URL)
	if err != nil {
		return err
	}
	partial, err := os.CreateTemp(tmp, "file-")
	if err != nil {
		return fmt.Errorf("cannot create a file to download to: %w", err)
	}
	sum := sha256.New()
	err = d.get(ctx, address, io.MultiWriter(partial, sum), d.limit, received)
	if closed := partial.Close(); err == nil && closed != nil {
		err = fmt.Errorf("cannot keep %s: %w", address.Redacted(), closed)
	}
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return &ChecksumError{URL: address.Redacted(), Want: want, Got: got}
	}
	return unpack(f, partial.Name(), programs, d.limit)
}
