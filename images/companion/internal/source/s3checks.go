// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha1" //nolint:gosec // S3 may have nothing better. It finds accidents; digests find attacks.
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

// nvme is the polynomial of CRC64NVME, reversed.
const nvme = 0x9a6c9329ac4bc9b5

// checksOf returns the best of an object's checksums. Checksums of an upload in parts that were put together of the parts' checksums
// say nothing about the whole.
func checksOf(kind types.ChecksumType, sha256Sum, crc64Sum, crc32cSum, crc32Sum, sha1Sum *string) []transfer.Check {
	if kind == types.ChecksumTypeComposite {
		return nil
	}
	for _, c := range []struct {
		name string
		want *string
		hash func() hash.Hash
	}{
		{"SHA256", sha256Sum, sha256.New},
		{"CRC64NVME", crc64Sum, func() hash.Hash { return crc64.New(crc64.MakeTable(nvme)) }},
		{"CRC32C", crc32cSum, func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }},
		{"CRC32", crc32Sum, func() hash.Hash { return crc32.NewIEEE() }},
		{"SHA1", sha1Sum, sha1.New},
	} {
		if c.want != nil && !strings.Contains(*c.want, "-") {
			return []transfer.Check{{Name: c.name, Want: *c.want, Hash: c.hash}}
		}
	}
	return nil
}

// smithyClient sends requests. The SDK adds what it thinks to errors; what happened stays findable.
type smithyClient struct{ transport http.RoundTripper }

// Do sends a request. Redirects are none of S3.
func (c *smithyClient) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, &unansweredError{Host: r.URL.Host, Err: err}
	}
	return resp, nil
}

// unansweredError is a request to a host that got no answer.
type unansweredError struct {
	Host string
	Err  error
}

func (u *unansweredError) Error() string { return u.Err.Error() }
func (u *unansweredError) Unwrap() error { return u.Err }

// explain an error of the SDK.
func (b *bucketOf) explain(key string, err error) error {
	var none *unansweredError
	if errors.As(err, &none) {
		return unanswered(&url.Error{Op: "Get", URL: "https://" + none.Host, Err: none.Err})
	}
	what := fmt.Sprintf("%q of bucket %q", key, b.bucket)
	status := 0
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) {
		status = resp.HTTPStatusCode()
	}
	code, says := "", ""
	var api smithy.APIError
	if errors.As(err, &api) {
		code, says = api.ErrorCode(), api.ErrorMessage()
	}
	if f := b.known(code, what, says); f != nil {
		f.Err = err
		return f
	}
	switch {
	case status == http.StatusPreconditionFailed:
		return changed("object " + what)
	case status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect:
		return failure.New(failure.Invalid, fmt.Sprintf("bucket %q is in another region%s", b.bucket, regionOf(resp)), "add region= to the query of spec.model.uri, or set the key region of the credentials")
	case status != 0:
		if code != "" && code != http.StatusText(status) {
			says = strings.TrimSpace(code + " " + says)
		}
		return refused(what, status, says, retryAfter(resp.Response.Header))
	}
	return transfer.Temporary(&said{what: fmt.Sprintf("cannot get %s: the answer was cut off or is none of S3", what), err: err})
}

// said is an error in other words than its own, which hold the number of the request.
type said struct {
	what string
	err  error
}

func (s *said) Error() string { return s.what }
func (s *said) Unwrap() error { return s.err }

// known failures, by the codes that servers give them.
func (b *bucketOf) known(code, what, says string) *failure.Failure {
	switch code {
	case "NoSuchBucket":
		return failure.New(failure.NotFound, fmt.Sprintf("there is no bucket %q", b.bucket), "correct the URI or the endpoint")
	case "SignatureDoesNotMatch":
		return failure.New(failure.Forbidden, "the secret access key is wrong", remedySecret)
	case "InvalidAccessKeyId":
		return failure.New(failure.Forbidden, "the access key is unknown", remedySecret)
	case "ExpiredToken", "TokenRefreshRequired", "InvalidToken":
		return failure.New(failure.Forbidden, "the session token has expired or is wrong", remedySecret)
	case "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return failure.New(failure.Invalid, fmt.Sprintf("cannot get %s: %s", what, says), "add region= to the query of spec.model.uri, or set the key region of the credentials")
	case "RequestTimeTooSkewed":
		return failure.New(failure.Forbidden, "the clocks of the node and of the object storage differ by more than they may", "set the clock of the node")
	case "InvalidObjectState":
		return failure.New(failure.Invalid, what+" is in an archive", "restore it first")
	case "AccessDenied":
		if b.opened != "" && b.opened != b.bucket {
			return failure.New(failure.Forbidden, fmt.Sprintf("cannot get %s: the credentials are for bucket %q", what, b.opened), remedySecret)
		}
	}
	return nil
}

// regionOf is where a bucket is, if the answer says so.
func regionOf(resp *smithyhttp.ResponseError) string {
	if region := resp.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
		return ": " + region
	}
	return ""
}
