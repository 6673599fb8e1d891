// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// errStalled ends a transfer whose bytes have stopped.
var errStalled = errors.New("stalled")

// A site is a host that has been asked whether it answers.
type site struct {
	mu    sync.Mutex
	asked bool
	err   error
}

// locate returns where to get a file: its original address, or below the mirror.
func (d *Downloader) locate(address string) (*url.URL, error) {
	original, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the address of a release: %w", err)
	}
	if d.mirror == nil {
		return original, nil
	}
	return d.mirror.JoinPath(original.Host, original.Path), nil
}

// reach asks a site once whether it answers, and remembers what it found.
func (d *Downloader) reach(ctx context.Context, address *url.URL) error {
	s := d.site(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked {
		return s.err
	}
	err := d.probe(ctx, address)
	if ctx.Err() != nil {
		return context.Cause(ctx) // says nothing about the site
	}
	s.asked, s.err = true, err
	return err
}

func (d *Downloader) site(address *url.URL) *site {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sites == nil {
		d.sites = map[string]*site{}
	}
	key := address.Scheme + "://" + address.Host
	if d.sites[key] == nil {
		d.sites[key] = &site{}
	}
	return d.sites[key]
}

// forget marks a site as one that does not answer, so that no other file waits for it.
func (d *Downloader) forget(address *url.URL, err error) {
	s := d.site(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.err = true, err
}

// probe accepts every answer except errors of a server or of a proxy in front of it.
func (d *Downloader) probe(ctx context.Context, address *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, d.probeTimeout)
	defer cancel()
	root := *address
	root.Path, root.RawPath = "/", ""
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, root.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot ask a site: %w", err)
	}
	// The transport follows no redirects: an answer is enough.
	resp, err := d.client.Transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%w: %s within %s: %w", ErrUnreachable, address.Host, d.probeTimeout, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%w: %s answers %s", ErrUnreachable, address.Host, resp.Status)
	}
	return nil
}

// get writes a file to w, at most limit bytes, and adds to received as they arrive. It ends when bytes stop arriving.
func (d *Downloader) get(ctx context.Context, address *url.URL, w io.Writer, limit int64, received *atomic.Int64) error {
	parent := ctx
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watchdog := time.AfterFunc(d.stallTimeout, func() { cancel(errStalled) })
	defer watchdog.Stop()
	stalled := func() bool { return errors.Is(context.Cause(ctx), errStalled) }

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot ask for %s: %w", address.Redacted(), err)
	}
	resp, err := d.client.Do(req)
	switch {
	case err == nil:
	case parent.Err() != nil:
		return context.Cause(parent)
	case errors.Is(err, ErrNotServed):
		return err
	default:
		// The address would be there twice.
		if wrapper := (*url.Error)(nil); errors.As(err, &wrapper) {
			err = wrapper.Err
		}
		if stalled() {
			err = fmt.Errorf("no answer within %s", d.stallTimeout)
		}
		err = fmt.Errorf("%w: %s: %w", ErrUnreachable, address.Redacted(), err)
		d.forget(address, err)
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answers %s", ErrNotServed, address.Redacted(), resp.Status)
	}
	watchdog.Reset(d.stallTimeout)
	body := &watched{Reader: resp.Body, extend: func() { watchdog.Reset(d.stallTimeout) }, received: received}
	written, err := io.Copy(w, io.LimitReader(body, limit+1))
	switch {
	case parent.Err() != nil:
		return context.Cause(parent)
	case stalled():
		return fmt.Errorf("%w: %s: less than %d KiB in %s, after %d bytes", ErrBroken, address.Redacted(), stallBytes>>10, d.stallTimeout, written)
	case body.err != nil:
		return fmt.Errorf("%w: %s: %s arrived: %w", ErrBroken, address.Redacted(), share(written, resp.ContentLength), body.err)
	case err != nil:
		return fmt.Errorf("cannot keep %s: %w", address.Redacted(), err)
	case written > limit:
		return fmt.Errorf("%w: %s has more than %d MiB", ErrContent, address.Redacted(), limit>>20)
	}
	return nil
}

// watched reports progress and remembers that it was reading that failed, not writing.
type watched struct {
	io.Reader

	extend   func()
	received *atomic.Int64
	fresh    int
	err      error
}

func (r *watched) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.fresh += n; r.fresh >= stallBytes {
		r.fresh = 0
		r.extend()
	}
	if r.received != nil {
		r.received.Add(int64(n))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func share(part, whole int64) string {
	if whole < 0 {
		return fmt.Sprintf("%d bytes", part)
	}
	return fmt.Sprintf("%d of %d bytes", part, whole)
}
