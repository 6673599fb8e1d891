// SPDX-License-Identifier: Apache-2.0

// Package content counts what is in a bucket, and deletes it.
package content

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// pageSize is how much is listed and deleted at once: the most that S3 allows.
const pageSize = 1000

const (
	// most is where counting stops.
	most = 10_000

	// Reserve is the time of a reconcile that is left for its end when a bucket is emptied.
	Reserve = 20 * time.Second
)

// A Bucket on a server.
type Bucket struct {
	API  *awss3.Client
	Name string
}

// A Count of what is in a bucket.
type Count struct {
	objects, old, markers, uploads int

	// more says that counting stopped early.
	more bool
}

// String for people. It is the same as long as the content is the same.
func (c Count) String() string {
	if c.more {
		return fmt.Sprintf("more than %s objects, old versions and uploads", thousands(most))
	}
	var all []string
	for _, n := range []struct {
		number int
		one    string
		many   string
	}{
		{c.objects, "object", "objects"},
		{c.old, "old version", "old versions"},
		{c.markers, "delete marker", "delete markers"},
		{c.uploads, "unfinished upload", "unfinished uploads"},
	} {
		switch n.number {
		case 0:
		case 1:
			all = append(all, "1 "+n.one)
		default:
			all = append(all, thousands(n.number)+" "+n.many)
		}
	}
	return strings.Join(all, ", ")
}

func (c Count) sum() int { return c.objects + c.old + c.markers + c.uploads }

// Items is a number of objects or versions, for people.
func Items(n int) string {
	if n == 1 {
		return "1 object or version"
	}
	return thousands(n) + " objects or versions"
}

// IsZero reports whether nothing is in the bucket.
func (c Count) IsZero() bool { return c == Count{} }

func thousands(n int) string {
	if n < pageSize {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// An item is a version of an object, or a marker of its deletion.
type item struct {
	key     string
	version *string

	latest, marker bool
}

// A pager lists what is in a bucket. It begins with versions, and lists objects when the server has no versions.
type pager struct {
	b Bucket

	size int32
	flat bool
	done bool

	key, version, token *string
}

// next page, empty after the last.
func (p *pager) next(ctx context.Context) ([]item, error) {
	if p.done {
		return nil, nil
	}
	if !p.flat {
		items, err := p.versions(ctx)
		if !s3.NotImplemented(err) {
			return items, err
		}
		p.flat = true
	}
	return p.objects(ctx)
}

func (p *pager) versions(ctx context.Context) ([]item, error) {
	out, err := p.b.API.ListObjectVersions(ctx, &awss3.ListObjectVersionsInput{
		Bucket:          aws.String(p.b.Name),
		MaxKeys:         aws.Int32(p.size),
		KeyMarker:       p.key,
		VersionIdMarker: p.version,
		EncodingType:    types.EncodingTypeUrl,
	})
	if err != nil {
		return nil, err
	}
	var items []item
	for _, v := range out.Versions {
		items = append(items, item{key: decoded(v.Key, out.EncodingType), version: v.VersionId, latest: aws.ToBool(v.IsLatest)})
	}
	for _, m := range out.DeleteMarkers {
		items = append(items, item{key: decoded(m.Key, out.EncodingType), version: m.VersionId, marker: true})
	}
	key, version := aws.String(decoded(out.NextKeyMarker, out.EncodingType)), out.NextVersionIdMarker
	p.done = !aws.ToBool(out.IsTruncated)
	if !p.done && aws.ToString(key) == aws.ToString(p.key) && aws.ToString(version) == aws.ToString(p.version) {
		return nil, stuck()
	}
	p.key, p.version = key, version
	return items, nil
}

func (p *pager) objects(ctx context.Context) ([]item, error) {
	out, err := p.b.API.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{
		Bucket:            aws.String(p.b.Name),
		MaxKeys:           aws.Int32(p.size),
		ContinuationToken: p.token,
		EncodingType:      types.EncodingTypeUrl,
	})
	if err != nil {
		return nil, err
	}
	var items []item
	for _, o := range out.Contents {
		items = append(items, item{key: decoded(o.Key, out.EncodingType), latest: true})
	}
	p.done = !aws.ToBool(out.IsTruncated)
	if !p.done && aws.ToString(out.NextContinuationToken) == aws.ToString(p.token) {
		return nil, stuck()
	}
	p.token = out.NextContinuationToken
	return items, nil
}

// stuck is the failure of a list that has no end.
func stuck() error {
	return &outside.Failure{
		Reason:  capstan.ReasonUnknownAnswer,
		Message: "the server lists the same part of the bucket again and again",
		Remedy:  "see whether a newer version of the server does not",
	}
}

// decoded key of a list. Keys may hold characters that XML cannot, so servers that know how to encode them.
func decoded(key *string, encoding types.EncodingType) string {
	k := aws.ToString(key)
	if encoding != types.EncodingTypeUrl {
		return k
	}
	if d, err := url.QueryUnescape(k); err == nil {
		return d
	}
	return k
}

// IsEmpty reports whether nothing is in the bucket, old versions and unfinished uploads included.
func (b Bucket) IsEmpty(ctx context.Context) (bool, error) {
	c, err := b.count(ctx, 1)
	return c.IsZero(), err
}

// Count what is in the bucket.
func (b Bucket) Count(ctx context.Context) (Count, error) { return b.count(ctx, most) }

func (b Bucket) count(ctx context.Context, limit int) (Count, error) {
	var c Count
	for p := (&pager{b: b, size: int32(min(limit, pageSize))}); !p.done; { //nolint:gosec // At most a thousand.
		items, err := p.next(ctx)
		if err != nil {
			return c, err
		}
		for _, i := range items {
			switch {
			case i.marker:
				c.markers++
			case i.latest:
				c.objects++
			default:
				c.old++
			}
		}
		if c.sum() >= limit && !p.done {
			c.more = true
			return c, nil
		}
	}
	err := b.eachUpload(ctx, func(types.MultipartUpload) (bool, error) {
		c.uploads++
		c.more = c.sum() > limit
		return !c.more, nil
	})
	return c, err
}

// eachUpload calls fn for the uploads that are not finished, until it says no.
func (b Bucket) eachUpload(ctx context.Context, fn func(types.MultipartUpload) (bool, error)) error {
	in := &awss3.ListMultipartUploadsInput{Bucket: aws.String(b.Name), MaxUploads: aws.Int32(pageSize), EncodingType: types.EncodingTypeUrl}
	for {
		out, err := b.API.ListMultipartUploads(ctx, in)
		if s3.NotImplemented(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, u := range out.Uploads {
			u.Key = aws.String(decoded(u.Key, out.EncodingType))
			if more, err := fn(u); err != nil || !more {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) {
			return nil
		}
		key := aws.String(decoded(out.NextKeyMarker, out.EncodingType))
		if aws.ToString(key) == aws.ToString(in.KeyMarker) && aws.ToString(out.NextUploadIdMarker) == aws.ToString(in.UploadIdMarker) {
			return stuck()
		}
		in.KeyMarker, in.UploadIdMarker = key, out.NextUploadIdMarker
	}
}

// Destroy what is in the bucket, until it is empty (done) or the time is nearly up. Items that the server does not let it delete
// are kept and counted.
func (b Bucket) Destroy(ctx context.Context) (done bool, kept int, err error) {
	for p := (&pager{b: b, size: pageSize}); !p.done; {
		if late(ctx) {
			return false, kept, nil
		}
		items, err := p.next(ctx)
		if err != nil {
			return false, kept, err
		}
		n, err := b.destroy(ctx, items)
		if err != nil {
			return false, kept, err
		}
		kept += n
	}
	done = true
	err = b.eachUpload(ctx, func(u types.MultipartUpload) (bool, error) {
		if late(ctx) {
			done = false
			return false, nil
		}
		_, err := b.API.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{Bucket: aws.String(b.Name), Key: u.Key, UploadId: u.UploadId})
		if s3.Code(err) == "NoSuchUpload" {
			err = nil
		}
		return err == nil, err
	})
	return done, kept, err
}

// late reports whether the time of this reconcile is nearly up.
func late(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(end) < Reserve
}

// destroy items and return how many of them the server does not let it delete.
func (b Bucket) destroy(ctx context.Context, items []item) (int, error) {
	batch, single := []types.ObjectIdentifier{}, []item{}
	for _, i := range items {
		if inXML(i.key) {
			batch = append(batch, types.ObjectIdentifier{Key: aws.String(i.key), VersionId: i.version})
		} else {
			single = append(single, i)
		}
	}
	kept := 0
	if len(batch) > 0 {
		out, err := b.API.DeleteObjects(ctx, &awss3.DeleteObjectsInput{
			Bucket: aws.String(b.Name),
			Delete: &types.Delete{Objects: batch, Quiet: aws.Bool(true)},
		})
		switch {
		case s3.NotImplemented(err):
			single = items
		case err != nil:
			return 0, err
		default:
			for _, e := range out.Errors {
				if c := aws.ToString(e.Code); c != "NoSuchKey" && c != "NoSuchVersion" {
					kept++
				}
			}
		}
	}
	for _, i := range single {
		_, err := b.API.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: aws.String(b.Name), Key: aws.String(i.key), VersionId: i.version})
		switch {
		case err == nil, s3.Code(err) == "NoSuchKey", s3.Code(err) == "NoSuchVersion":
		case s3.Refused(err):
			kept++
		default:
			return kept, err
		}
	}
	return kept, nil
}

// inXML reports whether a key can be written in XML 1.0. The others are deleted one by one, with the key in the URL.
func inXML(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool {
		return r < 0x20 || r == 0xFFFD || r == 0xFFFE || r == 0xFFFF
	})
}
