// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

var errBroken = errors.New("the line is dead")

func options(t *testing.T, limit time.Duration) Options {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	return Options{Retry: Retry{Limit: limit, Log: log}, Parallel: 4, Progress: NewProgress(t.Context(), log, time.Hour)}
}

// folder returns a folder to download into, and what is there now.
func folder(t *testing.T) (*model.Folder, func() model.Manifest) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return model.NewFolder(root), func() model.Manifest {
		m, err := model.Of(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func TestStream(t *testing.T) {
	const content = "all of the model"
	cases := map[string]struct {
		reason string
		// cut is after how many bytes each connection breaks; the last one does not.
		cut  []int
		size int64
		err  failure.Reason
	}{
		"AtOnce":  {reason: "Nothing breaks.", size: int64(len(content))},
		"Resumed": {reason: "It goes on where it broke.", cut: []int{5, 7}, size: int64(len(content))},
		"Unknown": {reason: "Without a size the end is the end.", size: -1},
		"Nothing": {reason: "Nobody answers at all.", cut: []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, size: int64(len(content)), err: failure.Unreachable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			opened, counted := 0, 0
			s := NewStream(t.Context(), options(t, time.Second).Retry, func(_ context.Context, offset int64) (io.ReadCloser, error) {
				r := io.Reader(strings.NewReader(content[offset:]))
				if opened < len(tc.cut) {
					r = io.MultiReader(io.LimitReader(r, int64(tc.cut[opened])), iotest.ErrReader(errBroken))
				}
				opened++
				return io.NopCloser(r), nil
			}, tc.size, func(n int) { counted += n })
			got, err := io.ReadAll(s)
			_ = s.Close()
			if tc.err != "" {
				if !failure.Is(err, tc.err) || !strings.Contains(err.Error(), errBroken.Error()) {
					t.Errorf("%s\nwant %s with what happened, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil || string(got) != content || counted != len(content) {
				t.Errorf("%s\nwant everything once, got %q, counted %d, %v", tc.reason, got, counted, err)
			}
		})
	}
}

func TestPatience(t *testing.T) {
	cases := map[string]struct {
		reason string
		errs   []error
		limit  time.Duration
		want   string
		tries  int
	}{
		"Good":      {reason: "No error, no second try.", limit: time.Minute, tries: 1},
		"Passes":    {reason: "What passes is not told.", errs: []error{Temporary(errBroken)}, limit: time.Minute, tries: 2},
		"Permanent": {reason: "What will not pass is told at once.", errs: []error{errBroken}, limit: time.Minute, want: errBroken.Error(), tries: 1},
		"Told": {
			reason: "Who wants to be left alone for longer than there is patience is not asked again.",
			errs:   []error{&TemporaryError{Err: errBroken, After: time.Minute}}, limit: time.Second, want: errBroken.Error(), tries: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tries := 0
			err := options(t, tc.limit).Do(t.Context(), func(context.Context) error {
				tries++
				if tries <= len(tc.errs) {
					return tc.errs[tries-1]
				}
				return nil
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || tries != tc.tries {
				t.Errorf("%s\nwant %q after %d tries, got %q after %d", tc.reason, tc.want, tc.tries, got, tries)
			}
		})
	}
}

// random content, the same each time.
func random(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// served returns a File whose connections break after some bytes.
func served(name string, content []byte, cut int, requests *atomic.Int32) File {
	part := func(_ context.Context, offset, length int64) (io.ReadCloser, error) {
		requests.Add(1)
		r := io.Reader(bytes.NewReader(content[offset : offset+length]))
		if cut > 0 && requests.Load()%3 == 0 {
			r = io.MultiReader(io.LimitReader(r, int64(cut)), iotest.ErrReader(errBroken))
		}
		return io.NopCloser(r), nil
	}
	sum := sha256.Sum256(content)
	return File{
		Path: name, Size: int64(len(content)), Parts: true, OpenPart: part,
		Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) {
			return part(ctx, offset, int64(len(content))-offset)
		},
		Checks: func() []Check {
			return []Check{{Name: "SHA256", Want: base64.StdEncoding.EncodeToString(sum[:]), Hash: sha256.New}}
		},
	}
}

func TestFiles(t *testing.T) {
	f, there := folder(t)
	var requests atomic.Int32
	var list []File
	var want []string
	for i, size := range []int{0, 1, 1000, 2*part + 1, 3*part - 1, 3 * part, bufferSize} {
		content := random(size)
		name := fmt.Sprintf("%d/model", i)
		list = append(list, served(name, content, 100_000, &requests))
		want = append(want, fmt.Sprintf("%s %d %x", name, size, sha256.Sum256(content)))
	}
	if err := Files(t.Context(), f, list, options(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	computed, err := f.Seal(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []model.Manifest{computed, there()} {
		var got []string
		for _, file := range m {
			got = append(got, fmt.Sprintf("%s %d %x", file.Path, file.Size, file.Sum))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
	if requests.Load() <= 4+9 {
		t.Errorf("want broken connections to be opened again, got %d requests", requests.Load())
	}
}

func TestFilesFail(t *testing.T) {
	gone := failure.New(failure.NotFound, "it is gone", "upload it")
	cases := map[string]struct {
		reason string
		change func(f *File)
		size   int
		want   failure.Reason
	}{
		"Gone": {
			reason: "One file that fails ends all of it.", size: 10, want: failure.NotFound,
			change: func(f *File) { f.Open = func(context.Context, int64) (io.ReadCloser, error) { return nil, gone } },
		},
		"PartGone": {
			reason: "So does one part.", size: 3 * part, want: failure.NotFound,
			change: func(f *File) {
				whole := f.OpenPart
				f.OpenPart = func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
					if offset == part {
						return nil, gone
					}
					return whole(ctx, offset, length)
				}
			},
		},
		"NotPrepared": {
			reason: "And what comes before the parts.", size: 3 * part, want: failure.NotFound,
			change: func(f *File) { f.Prepare = func(context.Context) error { return gone } },
		},
		"Wrong": {
			reason: "A file that came in one is compared with the server's checksum.", size: 10, want: failure.DigestMismatch,
			change: func(f *File) { f.Checks = wrong },
		},
		"WrongParts": {
			reason: "One that came in parts is, too.", size: 3 * part, want: failure.DigestMismatch,
			change: func(f *File) { f.Checks = wrong },
		},
		"Escape": {
			reason: "Names are not trusted.", size: 10, want: failure.Invalid,
			change: func(f *File) { f.Path = "../model" },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			list := []File{served("a", random(100), 0, &requests), served("b", random(tc.size), 0, &requests), served("c", random(3*part), 0, &requests)}
			tc.change(&list[1])
			f, _ := folder(t)
			if err := Files(t.Context(), f, list, options(t, time.Minute)); !failure.Is(err, tc.want) {
				t.Errorf("%s\nwant %s, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func wrong() []Check {
	return []Check{{Name: "SHA256", Want: "AAAA", Hash: sha256.New}}
}

func TestFilesCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	f, _ := folder(t)
	hang := func(ctx context.Context, _ int64) (io.ReadCloser, error) {
		cancel(errBroken)
		<-ctx.Done()
		return nil, Temporary(ctx.Err())
	}
	if err := Files(ctx, f, []File{{Path: "a", Size: 1, Open: hang}}, options(t, time.Minute)); !errors.Is(err, errBroken) {
		t.Errorf("want the cause of the end, got %v", err)
	}
}

func TestPlain(t *testing.T) {
	dial := &net.OpError{
		Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 43210}, Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 0, 1), Port: 443},
		Err: os.NewSyscallError("read", syscall.ECONNRESET),
	}
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Reset":   {reason: "The port differs each time.", err: dial, want: "connection reset by peer"},
		"Request": {reason: "Queries may hold signatures.", err: &url.Error{Op: "Get", URL: "https://s3.example.org/a?X-Amz-Signature=b", Err: dial}, want: `cannot reach "s3.example.org": connection reset by peer`},
		"Name":    {reason: "The name server's address is of no use.", err: &url.Error{Op: "Get", URL: "https://a/", Err: &net.DNSError{Err: "no such host", Name: "a", Server: "10.0.0.10:53"}}, want: `cannot reach "a": the name "a" cannot be resolved`},
		"Late":    {reason: "A timeout by any name.", err: &url.Error{Op: "Get", URL: "https://a/", Err: context.DeadlineExceeded}, want: `cannot reach "a": no answer in time`},
		"Other":   {reason: "Anything else is what it is.", err: errBroken, want: "the line is dead"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Plain(tc.err)); diff != "" {
				t.Errorf("%s\nPlain(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(t.Context(), slog.New(slog.NewTextHandler(&b, nil)), time.Hour)
	p.Expect(10)
	p.Count(3)
	p.Count(4)
	p.Done()
	if !strings.Contains(b.String(), "bytes=7") || !strings.Contains(b.String(), "total=10") || !strings.Contains(b.String(), "bytesPerSecond=") {
		t.Errorf("want bytes, total and rate, got %s", b.String())
	}
}
