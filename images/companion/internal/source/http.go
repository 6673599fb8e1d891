// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"

	// Images of ours hold no certificates of public authorities.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// dialTimeout of a connection.
const dialTimeout = 15 * time.Second

// newTransport returns what all sources speak HTTP with. Answers may take a while to begin.
func newTransport(c *Credentials, begin time.Duration) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		ResponseHeaderTimeout: begin,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   16,
		ReadBufferSize:        32 << 10,
		// Sizes and checksums are of what is stored.
		DisableCompression: true,
		// HTTP/2 buffers megabytes of each answer, and one connection for all of them is slower than several.
		Protocols: new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	if len(c.CA) == 0 {
		return t, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(c.CA) {
		return nil, failure.New(failure.Invalid, "the key ca.crt of the credentials has no certificate", remedySecret)
	}
	t.TLSClientConfig.RootCAs = roots
	return t, nil
}

// newClient returns what speaks HTTP with servers that may redirect. Answers may take a while to begin.
func newClient(c *Credentials, begin time.Duration) (*http.Client, error) {
	t, err := newTransport(c, begin)
	if err != nil {
		return nil, err
	}
	return new(guard).client(t), nil
}

// unanswered explains a request without an answer.
func unanswered(err error) error {
	var final *failure.Failure
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var wrong *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &final):
		return final
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &wrong):
		return &failure.Failure{
			Reason: failure.Unreachable, Cause: transfer.Plain(err), Err: err,
			Remedy: "put the certificate of the server's authority into the key ca.crt of the credentials, or correct the endpoint",
		}
	case errors.As(err, &record):
		return &failure.Failure{
			Reason: failure.Unreachable, Cause: "the server does not speak TLS", Err: err,
			Remedy: "write http:// instead of https:// if that is what it is for",
		}
	}
	return transfer.Temporary(err)
}

// refused explains an answer that is none: by its status, and what the server says for itself.
func refused(what string, status int, says string, after time.Duration) error {
	if says = strings.TrimRight(strings.TrimSpace(says), "."); says != "" {
		says = ": " + says
	}
	cause := fmt.Sprintf("cannot get %s: %d %s%s", what, status, http.StatusText(status), says)
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return failure.New(failure.NotFound, cause, "correct spec.model, or upload the model")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return failure.New(failure.Forbidden, cause, "give the credentials the right to read it, or correct the Secret that spec.model.credentials names")
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout,
		status >= http.StatusInternalServerError && status != http.StatusNotImplemented:
		return &transfer.TemporaryError{Err: errors.New(cause), After: after}
	}
	return failure.New(failure.Invalid, cause, "correct spec.model")
}

// retryAfter is how long a server wants to be left alone.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	var wait time.Duration
	if seconds, err := strconv.Atoi(value); err == nil {
		wait = time.Duration(min(seconds, 60)) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), time.Minute)
}

// A getter gets files from a server by plain HTTP.
type getter struct {
	client *http.Client
	sign   func(r *http.Request)
	// authorize a request beside sign, with what may expire, if it is not nil.
	authorize func(r *http.Request) error
	// encoding that the server may send what is stored in, "" for none.
	encoding string
	// explain turns the begin of an answer that is no success into what the server says.
	explain func(body []byte) string
}

// get what a URL names, from an offset on. The answer's body has size-offset bytes if size is not negative.
func (g *getter) get(ctx context.Context, address, what string, offset, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(followed(ctx), http.MethodGet, address, nil)
	if err != nil {
		return nil, invalid(what, "it is no URL")
	}
	g.sign(req)
	if g.authorize != nil {
		if err := g.authorize(req); err != nil {
			return nil, err
		}
	}
	if g.encoding != "" {
		req.Header.Set("Accept-Encoding", g.encoding)
	}
	switch {
	case offset > 0 && size > 0:
		// Some registries know no range without an end.
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, size-1))
	case offset > 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, unanswered(err)
	}
	switch {
	case resp.StatusCode == http.StatusPartialContent && offset > 0:
		if !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", offset)) {
			_ = resp.Body.Close()
			return nil, failure.New(failure.Invalid, fmt.Sprintf("cannot get %s: its server sends another part than the requested one", what),
				"look at the server")
		}
	case resp.StatusCode == http.StatusOK:
		if size >= 0 && resp.ContentLength >= 0 && resp.ContentLength != size {
			_ = resp.Body.Close()
			return nil, changed(what)
		}
		if offset > 0 {
			resp.Body, err = transfer.Skip(resp.Body, offset)
		}
	default:
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10))
		return nil, refused(what, resp.StatusCode, g.explain(body), retryAfter(resp.Header))
	}
	return resp, err
}

func changed(what string) error {
	return failure.New(failure.Invalid, what+" was replaced while it was downloaded",
		"upload each version of a model under a name of its own")
}

// Schemes of web servers, and of registries of images.
const (
	schemeOCI   = "oci"
	schemeHTTP  = "http"
	schemeHTTPS = "https"
)

// web reports whether a scheme is one of a web server.
func web(scheme string) bool { return scheme == schemeHTTPS || scheme == schemeHTTP }

// Public part of a URI, for logs and messages: without user, password and query, which may hold a signature.
func Public(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || !web(u.Scheme) {
		return uri
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// newWeb returns the one file that a URL names.
func newWeb(u *url.URL, o Options) (Source, error) {
	name := path.Base(u.Path)
	if u.Host == "" || u.User != nil || name == "/" || name == "." {
		return nil, invalid(Public(u.String()), "a URL of a file looks like https://host/path/file")
	}
	client, err := newClient(&o.Credentials, time.Minute)
	if err != nil {
		return nil, err
	}
	what := strconv.Quote(Public(u.String()))
	g := &getter{client: client, sign: o.Credentials.sign, explain: func([]byte) string { return "" }}
	return &files{o: o.Options, list: func(ctx context.Context) ([]transfer.File, error) {
		resp, err := g.get(ctx, u.String(), what, 0, -1)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		size := resp.ContentLength
		return []transfer.File{{Path: name, Size: size, Open: g.opener(u.String(), what, size)}}, nil
	}}, nil
}
