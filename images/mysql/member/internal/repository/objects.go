// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // Buckets that are locked ask for it.
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/capstan-dev/capstan/images/member/bucket"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/reach"
	"github.com/capstan-dev/capstan/internal/s3options"
)

// answered within is how long a server may take until it begins to answer.
const answeredWithin = 30 * time.Second

// A condition that an object is written on: that there is none with once, or that it has a tag.
type condition struct {
	once bool
	tag  string
}

// A store of objects, in a bucket or on a volume.
type store interface {
	// tagged object, with the tag that it has. It reports whether there is one.
	tagged(ctx context.Context, key string) (body io.ReadCloser, tag string, found bool, err error)
	// put an object as a whole, and report whether the condition held.
	put(ctx context.Context, key string, content io.ReadSeeker, c condition) (bool, error)
	// list the objects below a prefix; with shallow only the folders and objects right below it.
	list(ctx context.Context, prefix string, shallow bool) ([]entry, error)
	// remove an object. One that is not there is no error.
	remove(ctx context.Context, key string) error
}

// objects of a store, at a place in words.
type objects struct {
	store store
	place string
}

// inBucket are objects in a bucket.
type inBucket struct {
	api    *s3.Client
	bucket string
}

func openBucket(c bucket.Connection) (*objects, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		var err error
		if config.RootCAs, err = certificate.Authorities(c.CA); err != nil {
			return nil, fmt.Errorf("cannot use ca.crt of the bucket's connection Secret: %w: correct it", err)
		}
	}
	host := net.JoinHostPort(c.Host, c.Port)
	return &objects{place: "the bucket " + c.Bucket + " at " + host, store: &inBucket{bucket: c.Bucket, api: s3.New(s3.Options{
		BaseEndpoint: aws.String("https://" + host), UsePathStyle: true, Region: c.Region,
		Credentials: credentials.NewStaticCredentialsProvider(c.Key, c.Secret, c.Token),
		HTTPClient: &http.Client{Transport: &http.Transport{
			TLSClientConfig: config, DialContext: reach.Dial, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			ResponseHeaderTimeout: answeredWithin, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: parallel,
		}},
	}, s3options.AnyMake)}}, nil
}

func (b *inBucket) tagged(ctx context.Context, key string) (body io.ReadCloser, tag string, found bool, err error) {
	out, err := b.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.bucket, Key: &key})
	switch {
	case refused(err, "NoSuchKey", "NotFound"):
		return nil, "", false, nil
	case err != nil:
		return nil, "", false, err
	}
	return out.Body, aws.ToString(out.ETag), true, nil
}

func (b *inBucket) put(ctx context.Context, key string, content io.ReadSeeker, c condition) (bool, error) {
	sum := md5.New() //nolint:gosec // Buckets that are locked ask for it.
	_, err := io.Copy(sum, content)
	if err == nil {
		_, err = content.Seek(0, io.SeekStart)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read what to write: %w", err)
	}
	in := &s3.PutObjectInput{Bucket: &b.bucket, Key: &key, Body: content, ContentMD5: aws.String(base64.StdEncoding.EncodeToString(sum.Sum(nil)))}
	if c.once {
		in.IfNoneMatch = aws.String("*")
	}
	if c.tag != "" {
		in.IfMatch = &c.tag
	}
	_, err = b.api.PutObject(ctx, in)
	if in.IfMatch != nil && refused(err, "NotImplemented") {
		// Not all servers know this condition. The object was read a moment ago, so that another program rarely comes in between.
		in.IfMatch = nil
		if _, err = content.Seek(0, io.SeekStart); err == nil {
			_, err = b.api.PutObject(ctx, in)
		}
	}
	if (in.IfMatch != nil || in.IfNoneMatch != nil) && refused(err, "PreconditionFailed", "ConditionalRequestConflict") {
		return false, nil
	}
	return err == nil, err
}

func (b *inBucket) list(ctx context.Context, prefix string, shallow bool) ([]entry, error) {
	in := &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: &prefix}
	if shallow {
		in.Delimiter = aws.String("/")
	}
	var all []entry
	for pages := s3.NewListObjectsV2Paginator(b.api, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range page.CommonPrefixes {
			all = append(all, entry{key: aws.ToString(page.CommonPrefixes[i].Prefix)})
		}
		for i := range page.Contents {
			all = append(all, entry{
				aws.ToString(page.Contents[i].Key), aws.ToString(page.Contents[i].ETag), aws.ToTime(page.Contents[i].LastModified),
			})
		}
	}
	return all, nil
}

func (b *inBucket) remove(ctx context.Context, key string) error {
	_, err := b.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.bucket, Key: &key})
	if refused(err, "NoSuchKey", "NotFound") {
		return nil
	}
	return err
}

// get an object. It reports whether there is one.
func (o *objects) get(ctx context.Context, key string) (io.ReadCloser, bool, error) {
	body, _, found, err := o.tagged(ctx, key)
	return body, found, err
}

// tagged object, with the tag that it has.
func (o *objects) tagged(ctx context.Context, key string) (body io.ReadCloser, tag string, found bool, err error) {
	if body, tag, found, err = o.store.tagged(ctx, key); err != nil {
		return nil, "", false, fmt.Errorf("cannot read %s in %s: %w", key, o.place, plain(err))
	}
	return body, tag, found, nil
}

// put an object. With once it is not written over another one, and put reports whether it was written.
func (o *objects) put(ctx context.Context, key string, content io.ReadSeeker, once bool) (bool, error) {
	return o.putIf(ctx, key, content, condition{once: once})
}

// replace an object that has this tag, or make it where there was none, with "". It reports whether it was written: not when another program
// has written it meanwhile.
func (o *objects) replace(ctx context.Context, key, tag string, content io.ReadSeeker) (bool, error) {
	return o.putIf(ctx, key, content, condition{once: tag == "", tag: tag})
}

// putIf a condition holds.
func (o *objects) putIf(ctx context.Context, key string, content io.ReadSeeker, c condition) (bool, error) {
	written, err := o.store.put(ctx, key, content, c)
	if err != nil {
		return false, fmt.Errorf("cannot write %s in %s: %w", key, o.place, plain(err))
	}
	return written, nil
}

// An entry of a list of objects: a folder ends with a slash.
type entry struct {
	key, tag string
	written  time.Time
}

// list the objects below a prefix; with shallow only the folders and objects right below it.
func (o *objects) list(ctx context.Context, prefix string, shallow bool) ([]entry, error) {
	all, err := o.store.list(ctx, prefix, shallow)
	if err != nil {
		return nil, fmt.Errorf("cannot list %s in %s: %w", prefix, o.place, plain(err))
	}
	return all, nil
}

// same reports whether an object is still as it was listed.
func (o *objects) same(ctx context.Context, e entry) (bool, error) {
	now, err := o.list(ctx, e.key, false)
	return len(now) > 0 && now[0] == e, err
}

// remove an object. One that is not there is no error.
func (o *objects) remove(ctx context.Context, key string) error {
	if err := o.store.remove(ctx, key); err != nil {
		return fmt.Errorf("cannot delete %s in %s: %w", key, o.place, plain(err))
	}
	return nil
}

// removeAll objects below a prefix.
func (o *objects) removeAll(ctx context.Context, prefix string) error {
	all, err := o.list(ctx, prefix, false)
	if err != nil {
		return err
	}
	return each(all, func(_ int, e entry) error { return o.remove(ctx, e.key) })
}

func (o *objects) readJSON(ctx context.Context, key string, into any) (bool, error) {
	_, found, err := o.readTagged(ctx, key, into)
	return found, err
}

// readTagged is readJSON with the tag that the object has.
func (o *objects) readTagged(ctx context.Context, key string, into any) (tag string, found bool, err error) {
	body, tag, found, err := o.tagged(ctx, key)
	if err != nil || !found {
		return "", false, err
	}
	raw, err := io.ReadAll(body)
	err = errors.Join(err, body.Close())
	if err != nil {
		return "", false, fmt.Errorf("cannot read %s in %s: %w", key, o.place, plain(err))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return "", false, fmt.Errorf("cannot understand %s in %s: %w: %w", key, o.place, ErrDamaged, err)
	}
	return tag, true, nil
}

func (o *objects) writeJSON(ctx context.Context, key string, value any) error {
	return o.putJSON(ctx, key, value, false)
}

// create an object unless there is one.
func (o *objects) create(ctx context.Context, key string, value any) error {
	return o.putJSON(ctx, key, value, true)
}

func (o *objects) putJSON(ctx context.Context, key string, value any, once bool) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot write %s in %s: %w", key, o.place, err)
	}
	_, err = o.put(ctx, key, bytes.NewReader(raw), once)
	return err
}

// refused reports whether a server refused a request with one of these codes.
func refused(err error, codes ...string) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && slices.Contains(codes, answer.ErrorCode())
}

// plain is why a request failed, without what is another each time, such as the id of the request: a report changes only when a fact does.
func plain(err error) error {
	var (
		answer smithy.APIError
		outer  *url.Error
		inner  *net.OpError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &answer):
		return fmt.Errorf("the server refuses it: %s", strings.TrimSpace(answer.ErrorCode()))
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &outer) && outer.Timeout():
		return errors.New("the server does not answer in time")
	case errors.As(err, &inner):
		return fmt.Errorf("cannot %s: %w", inner.Op, inner.Err)
	case outer != nil:
		return outer.Err
	}
	return err
}
