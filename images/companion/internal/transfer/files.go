// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

const (
	// part is how much of a large file is requested at once; the parts of a file come side by side.
	part = 16 << 20
	// bufferSize of one connection.
	bufferSize = 256 << 10
	// unhashed is how many large files may wait for their digests.
	unhashed = 4
)

// A File that a server has.
type File struct {
	// Path within the model.
	Path string
	// Size in bytes, negative if the server does not say.
	Size int64
	// Parts reports that the server can send a part of it.
	Parts bool
	// Open the file, from an offset on.
	Open Open
	// OpenPart opens this many bytes from an offset on. Only files with Parts have it.
	OpenPart func(ctx context.Context, offset, length int64) (io.ReadCloser, error)
	// Prepare is called before a file is requested in parts, if it is not nil.
	Prepare func(ctx context.Context) error
	// Checks returns what the server says the file must add up to. It is called after Open or Prepare.
	Checks func() []Check
}

// A Check is a checksum that the server gives.
type Check struct {
	// Name of the algorithm.
	Name string
	// Hash that computes it.
	Hash func() hash.Hash
	// Want is the result in base64.
	Want string
}

// Options of a download.
type Options struct {
	Retry

	// Parallel requests.
	Parallel int
	Progress *Progress
}

// Files downloads all files into a folder.
func Files(ctx context.Context, folder *model.Folder, files []File, o Options) error {
	if err := model.Countable(len(files)); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := &download{Options: o, folder: folder, fail: fail}
	d.work.SetLimit(o.Parallel)
	d.hashing.SetLimit(unhashed)
	for _, f := range files {
		if ctx.Err() != nil {
			break
		}
		if f.Parts && f.Size > 2*part {
			d.inParts(ctx, f)
		} else {
			d.do(&d.work, func() error { return d.whole(ctx, f) })
		}
	}
	// The first error is the cause of all others.
	_, _ = d.work.Wait(), d.hashing.Wait()
	return context.Cause(ctx)
}

// A download of many files.
type download struct {
	Options

	folder        *model.Folder
	work, hashing errgroup.Group
	fail          context.CancelCauseFunc
}

// do something beside the rest. An error ends everything.
func (d *download) do(group *errgroup.Group, fn func() error) {
	group.Go(func() error {
		err := fn()
		if err != nil {
			d.fail(err)
		}
		return err
	})
}

// buffers are shared by all downloads; there are as many as requests side by side.
var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

func buffer() (*[]byte, func()) {
	b, ok := buffers.Get().(*[]byte)
	if !ok {
		panic("a pool has something else than what was put into it")
	}
	return b, func() { buffers.Put(b) }
}

// whole downloads a file by one request.
func (d *download) whole(ctx context.Context, f File) error {
	s := NewStream(ctx, d.Retry, f.Open, f.Size, d.Progress.Count)
	defer func() { _ = s.Close() }()
	if err := s.Start(); err != nil {
		return err
	}
	hashes, verify := checks(f)
	w, err := d.folder.Create(f.Path)
	if err != nil {
		return err
	}
	buf, free := buffer()
	defer free()
	if err := w.Copy(s, *buf, hashes...); err != nil {
		return err
	}
	return verify()
}

// checks returns the hashes of what a server gives checksums of, and what compares them in the end.
func checks(f File) ([]hash.Hash, func() error) {
	if f.Checks == nil {
		return nil, func() error { return nil }
	}
	list := f.Checks()
	hashes := make([]hash.Hash, len(list))
	for i, c := range list {
		hashes[i] = c.Hash()
	}
	return hashes, func() error {
		for i, c := range list {
			if got := base64.StdEncoding.EncodeToString(hashes[i].Sum(nil)); got != c.Want {
				return failure.New(failure.DigestMismatch,
					fmt.Sprintf("file %s has %s %s, and its server says %s", strconv.Quote(f.Path), c.Name, got, c.Want),
					"upload it again if this stays")
			}
		}
		return nil
	}
}

// inParts downloads a file by several requests, and computes its digest behind them, while what they wrote is still in memory of
// the operating system.
func (d *download) inParts(ctx context.Context, f File) {
	w, err := d.begin(ctx, f)
	if err != nil {
		d.fail(err)
		return
	}
	written := make(chan int64, f.Size/part+1)
	d.do(&d.hashing, func() error { return follow(ctx, w, f, written) })
	for offset := int64(0); offset < f.Size && ctx.Err() == nil; offset += part {
		d.do(&d.work, func() error {
			if err := d.onePart(ctx, w, f, offset); err != nil {
				return fmt.Errorf("cannot download %q: %w", f.Path, err)
			}
			written <- offset
			return nil
		})
	}
}

func (d *download) begin(ctx context.Context, f File) (*model.Writer, error) {
	if f.Prepare != nil {
		if err := d.Do(ctx, f.Prepare); err != nil {
			return nil, err
		}
	}
	return d.folder.Create(f.Path)
}

func (d *download) onePart(ctx context.Context, w io.WriterAt, f File, offset int64) error {
	length := min(part, f.Size-offset)
	s := NewStream(ctx, d.Retry, func(ctx context.Context, at int64) (io.ReadCloser, error) {
		return f.OpenPart(ctx, offset+at, length-at)
	}, length, d.Progress.Count)
	defer func() { _ = s.Close() }()
	buf, free := buffer()
	defer free()
	_, err := io.CopyBuffer(struct{ io.Writer }{io.NewOffsetWriter(w, offset)}, struct{ io.Reader }{s}, *buf)
	return err
}

// follow the parts of a file as they get written, compute its digest and finish it.
func follow(ctx context.Context, w *model.Writer, f File, written <-chan int64) error {
	sum := sha256.New()
	hashes, verify := checks(f)
	all := make([]io.Writer, 0, 1+len(hashes))
	all = append(all, sum)
	for _, h := range hashes {
		all = append(all, h)
	}
	to := struct{ io.Writer }{io.MultiWriter(all...)}
	buf, free := buffer()
	defer free()
	there := map[int64]bool{}
	for at := int64(0); at < f.Size; {
		if !there[at] {
			select {
			case <-ctx.Done():
				_ = w.Close()
				return context.Cause(ctx)
			case offset := <-written:
				there[offset] = true
			}
			continue
		}
		delete(there, at)
		length := min(part, f.Size-at)
		if _, err := io.CopyBuffer(to, struct{ io.Reader }{io.NewSectionReader(w, at, length)}, *buf); err != nil {
			return fmt.Errorf("cannot read what was written of %q: %w", f.Path, err)
		}
		at += length
	}
	if err := w.Finish(f.Size, [sha256.Size]byte(sum.Sum(nil))); err != nil {
		return err
	}
	return verify()
}
