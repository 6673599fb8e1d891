// SPDX-License-Identifier: Apache-2.0

package bucket

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

// content of a bucket, by number.
type content struct {
	objects, old, markers, uploads int

	// more tells that counting was ended early.
	more bool
}

// String for people. It is the same as long as the content is.
func (c content) String() string {
	if c.more {
		return fmt.Sprintf("more than %s objects, old versions and uploads", thousands(countMost))
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

func (c content) sum() int { return c.objects + c.old + c.markers + c.uploads }

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

// A pager lists what is in a bucket. It begins with versions and goes over to
// objects when the server has no versions.
type pager struct {
	b *bucket

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
	out, err := p.b.api.ListObjectVersions(ctx, &awss3.ListObjectVersionsInput{
		Bucket:          aws.String(p.b.name),
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
	out, err := p.b.api.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{
		Bucket:            aws.String(p.b.name),
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

// decoded key of a list. Keys may hold what XML cannot, so they come encoded from
// servers that know how to.
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

// count what is in the bucket, up to most.
func (b *bucket) count(ctx context.Context, most int) (content, error) {
	var c content

	for p := (&pager{b: b, size: int32(min(most, pageSize))}); !p.done; { //nolint:gosec // At most a thousand.
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

		if c.sum() >= most && !p.done {
			c.more = true

			return c, nil
		}
	}

	err := b.eachUpload(ctx, func(types.MultipartUpload) (bool, error) {
		c.uploads++
		c.more = c.sum() > most

		return !c.more, nil
	})

	return c, err
}

// eachUpload calls fn for the uploads that are not finished, until it says no.
func (b *bucket) eachUpload(ctx context.Context, fn func(types.MultipartUpload) (bool, error)) error {
	in := &awss3.ListMultipartUploadsInput{Bucket: aws.String(b.name), MaxUploads: aws.Int32(pageSize), EncodingType: types.EncodingTypeUrl}

	for {
		out, err := b.api.ListMultipartUploads(ctx, in)
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

// destroyContent of the bucket, until it is empty or the time is nearly up. It
// tells whether it got to the end. What the server does not let it delete it
// leaves, goes on, and tells at last.
func (b *bucket) destroyContent(ctx context.Context) (bool, error) {
	kept := 0

	for p := (&pager{b: b, size: pageSize}); !p.done; {
		if late(ctx) {
			return false, nil
		}

		items, err := p.next(ctx)
		if err != nil {
			return false, err
		}

		n, err := b.destroy(ctx, items)
		if err != nil {
			return false, err
		}

		kept += n
	}

	done := true

	err := b.eachUpload(ctx, func(u types.MultipartUpload) (bool, error) {
		if late(ctx) {
			done = false

			return false, nil
		}

		_, err := b.api.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{Bucket: aws.String(b.name), Key: u.Key, UploadId: u.UploadId})
		if s3.Code(err) == "NoSuchUpload" {
			err = nil
		}

		return err == nil, err
	})
	if err != nil || !done {
		return false, err
	}

	if kept > 0 {
		return false, b.protected(ctx, kept)
	}

	return true, nil
}

// late tells whether the time of this reconcile is nearly up.
func late(ctx context.Context) bool {
	end, ok := ctx.Deadline()

	return ctx.Err() != nil || ok && time.Until(end) < reserve
}

// destroy items and return how many of them the server does not let go.
func (b *bucket) destroy(ctx context.Context, items []item) (int, error) {
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
		out, err := b.api.DeleteObjects(ctx, &awss3.DeleteObjectsInput{
			Bucket: aws.String(b.name),
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
		_, err := b.api.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: aws.String(b.name), Key: aws.String(i.key), VersionId: i.version})

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

// inXML tells whether a key can be written in XML 1.0. The others are deleted one
// by one, with the key in the URL.
func inXML(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool {
		return r < 0x20 || r == 0xFFFD || r == 0xFFFE || r == 0xFFFF
	})
}

// protected is the failure of a bucket of which something cannot be deleted.
func (b *bucket) protected(ctx context.Context, kept int) error {
	what := thousands(kept) + " objects or versions"
	if kept == 1 {
		what = "1 object or version"
	}

	lock, err := lockOf(ctx, b)
	if err == nil && lock.enabled {
		return &outside.Failure{
			Reason:  capstan.ReasonNotEmpty,
			Message: fmt.Sprintf("bucket %q holds %s under a retention that has not ended, or under a legal hold", b.name, what),
			Remedy:  "wait for the end of the retention, or take Delete out of spec.managementPolicies to keep the bucket",
		}
	}

	return &outside.Failure{
		Reason:  capstan.ReasonForbidden,
		Message: fmt.Sprintf("the server does not let the provider's user delete %s of bucket %q", what, b.name),
		Remedy:  "give the user the rights s3:DeleteObject and s3:DeleteObjectVersion, and see that no policy of the bucket denies them",
	}
}
