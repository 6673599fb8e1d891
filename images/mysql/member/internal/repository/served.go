// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/reach"
	host "github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/vault"
)

// writtenWithin is how long a host may take until what it got is on its disk.
const writtenWithin = 2 * time.Minute

// A connection to the host of a volume, with the files of the certificate that opens it.
type served struct {
	// server is host and port.
	server string
	files  host.Files
	client *http.Client
}

// openServed volume at a host and port, with the certificate in the folder that its Secret is mounted to. Nothing is sent yet.
func openServed(server, dir string) (*served, error) {
	files, err := host.ReadFiles(dir)
	if err != nil {
		return nil, err
	}
	s := &served{server: server, files: files}
	s.client = &http.Client{Transport: &http.Transport{
		DialTLSContext: s.dial, ResponseHeaderTimeout: writtenWithin, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: parallel,
	}}
	return s, nil
}

// dial the host. The files are read again for each connection, for certificates change.
func (s *served) dial(ctx context.Context, network, address string) (net.Conn, error) {
	config, err := certificate.Identity(s.files.Cert, s.files.Key, s.files.CA)
	if err != nil {
		return nil, fmt.Errorf("cannot reach %s: %w", host.Place, err)
	}
	if config.ServerName, _, err = net.SplitHostPort(s.server); err != nil {
		return nil, fmt.Errorf("cannot reach %s: %w", host.Place, err)
	}
	raw, err := reach.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return conn, nil
}

// address of a path of the host.
func (s *served) address(path string) *url.URL {
	return &url.URL{Scheme: "https", Host: s.server, Path: path}
}

// repository of restic below a key, as restic reaches it.
func (s *served) repository(key string) string {
	return "rest:" + s.address(vault.PathCopies+key).String()
}

// identity is certificate and key in one file, as restic takes them. It is in memory only, and has no name.
func (s *served) identity() (*os.File, error) {
	fd, err := unix.MemfdCreate("identity", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the certificate for restic: %w", err)
	}
	f := os.NewFile(uintptr(fd), "identity")
	for _, file := range []string{s.files.Cert, s.files.Key} {
		raw, err := os.ReadFile(filepath.Clean(file))
		if err == nil {
			_, err = f.Write(append(raw, '\n'))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot prepare the certificate for restic: %w", err), f.Close())
		}
	}
	return f, nil
}

// An answer of a host that is a refusal.
type refusal struct {
	status int
	said   string
}

func (r *refusal) Error() string {
	if r.said != "" {
		return r.said
	}
	return fmt.Sprintf("the server answers %d %s", r.status, http.StatusText(r.status))
}

// call the host. An answer that is no success is a *refusal.
func (s *served) call(ctx context.Context, method string, to *url.URL, header http.Header, body io.ReadSeeker) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	if body != nil {
		if req.ContentLength, err = body.Seek(0, io.SeekEnd); err == nil {
			_, err = body.Seek(0, io.SeekStart)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read what to write: %w", err)
		}
		// For a connection that the host closed while it was idle.
		req.GetBody = func() (io.ReadCloser, error) {
			_, err := body.Seek(0, io.SeekStart)
			return io.NopCloser(body), err
		}
		req.Body = io.NopCloser(body)
		if req.ContentLength == 0 {
			req.Body = http.NoBody
		}
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxSaid))
	return nil, errors.Join(&refusal{res.StatusCode, host.Said(raw)}, err, res.Body.Close())
}

// done with a call whose answer has nothing.
func done(res *http.Response, err error) error {
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func statusOf(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.status
	}
	return 0
}

func (s *served) tagged(ctx context.Context, key string) (body io.ReadCloser, tag string, found bool, err error) {
	res, err := s.call(ctx, http.MethodGet, s.address(vault.PathObjects+key), nil, nil)
	switch {
	case statusOf(err) == http.StatusNotFound:
		return nil, "", false, nil
	case err != nil:
		return nil, "", false, err
	}
	return res.Body, res.Header.Get("Etag"), true, nil
}

func (s *served) put(ctx context.Context, key string, content io.ReadSeeker, c condition) (bool, error) {
	header := http.Header{}
	if c.once {
		header.Set("If-None-Match", "*")
	}
	if c.tag != "" {
		header.Set("If-Match", c.tag)
	}
	err := done(s.call(ctx, http.MethodPut, s.address(vault.PathObjects+key), header, content))
	if statusOf(err) == http.StatusPreconditionFailed {
		return false, nil
	}
	return err == nil, err
}

func (s *served) list(ctx context.Context, prefix string, shallow bool) ([]entry, error) {
	to, q := s.address(vault.PathList), url.Values{vault.QueryPrefix: {prefix}}
	if shallow {
		q.Set(vault.QueryShallow, "true")
	}
	to.RawQuery = q.Encode()
	res, err := s.call(ctx, http.MethodGet, to, nil, nil)
	if err != nil {
		return nil, err
	}
	var found []vault.Entry
	if err := errors.Join(json.NewDecoder(res.Body).Decode(&found), res.Body.Close()); err != nil {
		return nil, err
	}
	all := make([]entry, len(found))
	for i, e := range found {
		all[i] = entry{e.Key, e.Tag, e.Written}
	}
	return all, nil
}

func (s *served) remove(ctx context.Context, key string) error {
	return done(s.call(ctx, http.MethodDelete, s.address(vault.PathObjects+key), nil, nil))
}

// usage of the volume.
func (s *served) usage(ctx context.Context) (host.Usage, error) {
	res, err := s.call(ctx, http.MethodGet, s.address(host.PathUsage), nil, nil)
	if err != nil {
		return host.Usage{}, fmt.Errorf("cannot find out how full %s is: %w", host.Place, plain(err))
	}
	u, err := host.ReadUsage(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return host.Usage{}, fmt.Errorf("cannot find out how full %s is: %w", host.Place, plain(err))
	}
	return u, nil
}
