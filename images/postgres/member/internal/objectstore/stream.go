// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/member/reach"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

const (
	// silence is how long a server may send nothing.
	silence = time.Minute
	// retries of a read that gets nothing, each after a pause that grows.
	retries = 5
	pause   = time.Second
	// maxRefusal is how much of a refusal is read, in bytes.
	maxRefusal = 64 << 10
	// maxKeys that a list may have.
	maxKeys = 200_000
)

// An Object of a bucket. Its ETag is another one when its content is.
type Object struct {
	Key  string `xml:"Key"`
	ETag string `xml:"ETag"`
	Size int64  `xml:"Size"`
}

// A Bucket is read in any length, object by object.
type Bucket struct{ Store }

// OpenBucket to read from. Nothing is sent to the server yet.
func OpenBucket(r pgbackrest.Repository) (*Bucket, error) {
	config, err := configOf(r)
	if err != nil {
		return nil, err
	}
	return &Bucket{store(r, &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: config, DisableKeepAlives: true, DialContext: reach.Dial, Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: limit,
			// What is read is what the server has, and not what it decompresses to.
			DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})}, nil
}

// escaped key, as S3 has it in a signature: all but letters, digits and -._~/.
func escaped(key string) string {
	var out strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// Head of an object: what it is, and its first bytes. It reports whether there is such an object.
func (b *Bucket) Head(ctx context.Context, key string, bytes int) (Object, []byte, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	o, body, there, err := b.head(ctx, key, bytes)
	if err != nil {
		return o, nil, false, fmt.Errorf("cannot read %s in %s: %w", key, b.place, err)
	}
	return o, body, there, nil
}

func (b *Bucket) head(ctx context.Context, key string, bytes int) (Object, []byte, bool, error) {
	var none Object
	answer, err := b.get(ctx, key, http.Header{"Range": {fmt.Sprintf("bytes=0-%d", bytes-1)}})
	if err != nil {
		return none, nil, false, err
	}
	defer func() { _ = answer.Body.Close() }()
	most := int64(bytes)
	if answer.StatusCode/100 != 2 {
		most = maxRefusal
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return none, nil, false, plain(err)
	}
	o := Object{Key: key, ETag: answer.Header.Get("Etag"), Size: answer.ContentLength}
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusPartialContent:
		_, total, _ := strings.Cut(answer.Header.Get("Content-Range"), "/")
		if o.Size, err = strconv.ParseInt(total, 10, 64); err != nil {
			return none, nil, false, errors.New("the server does not say how large it is")
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return Object{Key: key}, nil, true, nil // It is empty.
	case http.StatusNotFound:
		if !strings.Contains(string(body), "NoSuchBucket") {
			return none, nil, false, nil
		}
		fallthrough
	default:
		return none, nil, false, errors.New(refusal(answer.StatusCode, body))
	}
	return o, body, true, nil
}

// List the objects whose keys begin so.
func (b *Bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	var all []Object
	next := ""
	for {
		query := url.Values{"list-type": {"2"}, "prefix": {prefix}}
		if next != "" {
			query.Set("continuation-token", next)
		}
		page, err := b.page(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("cannot list %s in %s: %w", prefix, b.place, err)
		}
		all = append(all, page.Contents...)
		switch next = page.Next; {
		case !page.Truncated || next == "":
			return all, nil
		case len(all) > maxKeys:
			return nil, fmt.Errorf("cannot list %s in %s: there are more than %d objects", prefix, b.place, maxKeys)
		}
	}
}

type page struct {
	Contents  []Object `xml:"Contents"`
	Truncated bool     `xml:"IsTruncated"`
	Next      string   `xml:"NextContinuationToken"`
}

func (b *Bucket) page(ctx context.Context, query url.Values) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// A space is %20 in a signature.
	req, err := b.asking(ctx, http.MethodGet, "", strings.ReplaceAll(query.Encode(), "+", "%20"), nil, nil)
	if err != nil {
		return page{}, err
	}
	answer, err := b.client.Do(req)
	if err != nil {
		return page{}, plain(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	if err != nil {
		return page{}, plain(err)
	}
	if answer.StatusCode != http.StatusOK {
		return page{}, errors.New(refusal(answer.StatusCode, body))
	}
	var p page
	if err := xml.Unmarshal(body, &p); err != nil {
		return page{}, errors.New("the answer of the server is no list of objects")
	}
	return p, nil
}

func (b *Bucket) get(ctx context.Context, key string, header http.Header) (*http.Response, error) {
	req, err := b.asking(ctx, http.MethodGet, key, "", header, nil)
	if err != nil {
		return nil, err
	}
	answer, err := b.client.Do(req)
	if err != nil {
		return nil, plain(err)
	}
	return answer, nil
}

// Stream an object from its beginning. A connection that breaks is made again where it broke, as long as the object is the same: who reads may be
// slow, and servers end connections over which nothing goes.
func (b *Bucket) Stream(ctx context.Context, o Object) io.ReadCloser {
	return &stream{ctx: ctx, from: b, of: o}
}

type stream struct {
	ctx  context.Context //nolint:containedctx // A reader has no other place for it.
	from *Bucket
	of   Object
	at   int64

	body     io.ReadCloser
	cancel   context.CancelFunc
	failures int
	err      error
}

// Read some of the object.
func (s *stream) Read(p []byte) (int, error) {
	for s.err == nil {
		if s.at >= s.of.Size {
			return 0, io.EOF
		}
		n, err := s.some(p)
		s.at += int64(n)
		if err != nil {
			_ = s.Close()
		}
		if n > 0 {
			s.failures = 0
			return n, nil
		}
		s.wait(err)
	}
	return 0, s.err
}

// Err is why reading has ended before the end of the object; nil while it has not.
func (s *stream) Err() error { return s.err }

// wait after a read that got nothing, or end with its error.
func (s *stream) wait(err error) {
	var final *finalError
	s.failures++
	if errors.As(err, &final) || s.failures > retries {
		s.err = fmt.Errorf("cannot read %s in %s: %w", s.of.Key, s.from.place, err)
		return
	}
	select {
	case <-s.ctx.Done():
		s.err = context.Cause(s.ctx)
	case <-time.After(time.Duration(s.failures) * pause):
	}
}

// A finalError is one that does not pass.
type finalError struct{ error }

// some of the object, over the connection that is open or a new one.
func (s *stream) some(p []byte) (int, error) {
	if s.body == nil {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	watchdog := time.AfterFunc(silence, s.cancel)
	defer watchdog.Stop()
	n, err := s.body.Read(p[:min(int64(len(p)), s.of.Size-s.at)])
	if err != nil && s.ctx.Err() == nil {
		err = fmt.Errorf("the connection has ended: %w", plain(err))
	}
	return n, err
}

func (s *stream) open() error {
	ctx, cancel := context.WithCancel(s.ctx)
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-", s.at)}}
	if s.of.ETag != "" {
		header["If-Match"] = []string{s.of.ETag}
	}
	answer, err := s.from.get(ctx, s.of.Key, header)
	if err != nil {
		cancel()
		return err
	}
	if answer.StatusCode == http.StatusPartialContent && (s.of.ETag == "" || answer.Header.Get("Etag") == s.of.ETag) {
		s.body, s.cancel = answer.Body, cancel
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	_ = answer.Body.Close()
	cancel()
	switch {
	case answer.StatusCode == http.StatusPreconditionFailed, answer.StatusCode == http.StatusPartialContent:
		return &finalError{errors.New("it was replaced while it was read: it is read again from its beginning")}
	case answer.StatusCode/100 == 5:
		return errors.New(refusal(answer.StatusCode, body))
	default:
		return &finalError{errors.New(refusal(answer.StatusCode, body))}
	}
}

// Close the connection.
func (s *stream) Close() error {
	if s.body == nil {
		return nil
	}
	err := s.body.Close()
	s.cancel()
	s.body = nil
	return err
}
