// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Explain what an S3 server answered. It returns nil when err is not an answer:
// the network's errors are not S3's. A Failure within err is returned as it is.
func Explain(err error) *outside.Failure {
	if f := (*outside.Failure)(nil); errors.As(err, &f) {
		return f
	}
	f := explain(err)
	if f != nil {
		f.Cause = err
	}
	return f
}

func explain(err error) *outside.Failure {
	if e := (*StrangeError)(nil); errors.As(err, &e) {
		return foreign(e)
	}
	api := smithy.APIError(nil)
	if !errors.As(err, &api) {
		return nil
	}
	status, header := 0, http.Header{}
	if e := (*smithyhttp.ResponseError)(nil); errors.As(err, &e) && e.HTTPResponse() != nil {
		status, header = e.HTTPStatusCode(), e.HTTPResponse().Header
	}
	if f := otherRegion(api, status, header); f != nil {
		return f
	}
	code := api.ErrorCode()
	if made(code, status) {
		code = ""
	}
	if f, known := known(code); known {
		if f.Reason == v1alpha1.ReasonRejected && isPolicy(code) {
			f.Message += why(api.ErrorMessage())
		}
		return naming(f, err)
	}
	return naming(byStatus(status, code), err)
}

// made reports whether the SDK has made a code from the status, because the answer has none.
func made(code string, status int) bool {
	return code == strings.ReplaceAll(http.StatusText(status), " ", "")
}

// naming the operation, where it is what people have to know: most rights have the name of theirs.
func naming(f *outside.Failure, err error) *outside.Failure {
	e := (*smithy.OperationError)(nil)
	if errors.As(err, &e) && (f.Reason == v1alpha1.ReasonForbidden || f.Reason == v1alpha1.ReasonNotImplemented) {
		f.Message = e.Operation() + ": " + f.Message
	}
	return f
}

// NotImplemented reports whether the server does not have what was requested.
func NotImplemented(err error) bool {
	f := Explain(err)
	return f != nil && f.Reason == v1alpha1.ReasonNotImplemented
}

// Code that an S3 server gave, or "".
func Code(err error) string {
	api := smithy.APIError(nil)
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

// Refused reports whether the server understood a request and said no, so that it surely did nothing. Of every other error no client
// knows.
func Refused(err error) bool {
	e := (*smithyhttp.ResponseError)(nil)
	if Code(err) == "" || !errors.As(err, &e) {
		return false
	}
	s := e.HTTPStatusCode()
	return s >= 300 && s < 500 && s != http.StatusRequestTimeout || s == http.StatusNotImplemented
}

// foreign explains an answer that is none of S3.
func foreign(e *StrangeError) *outside.Failure {
	switch {
	case e.Was == listing:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonNotImplemented,
			Message: "the server does not know this request and answers with " + listing,
			Remedy:  "use a server that has the feature",
		}
	case e.Status == http.StatusTooManyRequests:
		return throttled()
	case e.Status >= http.StatusInternalServerError:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonServerError,
			Message: "the server, or a proxy before it, failed: " + e.Error(),
			Remedy:  "check the server and its proxies; the provider tries again",
		}
	default:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonUnknownAnswer,
			Message: "the answer is not one of an S3 server: " + e.Error(),
			Remedy:  "check that the endpoint leads to the server and not to a proxy or a web page; nothing was changed because of this answer",
		}
	}
}

// regionName is what may be shown of what a server says about regions.
var (
	regionName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	expecting  = regexp.MustCompile(`expecting '([a-z0-9-]{1,63})'`)
)

// otherRegion explains that a bucket, or the server, is in another region.
func otherRegion(api smithy.APIError, status int, header http.Header) *outside.Failure {
	right := header.Get("X-Amz-Bucket-Region")
	if m := expecting.FindStringSubmatch(api.ErrorMessage()); m != nil && right == "" {
		right = m[1]
	}
	switch code := api.ErrorCode(); {
	case status == http.StatusMovedPermanently, status == http.StatusTemporaryRedirect, status == http.StatusPermanentRedirect:
	case code == "AuthorizationHeaderMalformed", code == "IllegalLocationConstraintException",
		code == "InvalidLocationConstraint", code == "InvalidRegion":
	// The answer to HEAD has no code.
	case status == http.StatusBadRequest && made(code, status) && right != "":
	default:
		return nil
	}
	f := &outside.Failure{
		Reason:  v1alpha1.ReasonRejected,
		Message: "the bucket, or the server, is in another region",
		Remedy:  "set spec.forProvider.region of a new Bucket, or spec.s3.region of the config",
	}
	if regionName.MatchString(right) {
		f.Message = fmt.Sprintf("the bucket, or the server, is in region %q", right)
		f.Remedy = fmt.Sprintf("set spec.forProvider.region of a new Bucket, or spec.s3.region of the config, to %q", right)
	}
	return f
}

// A meaning of codes.
type meaning struct {
	codes   []string
	failure outside.Failure
}

func throttled() *outside.Failure {
	return &outside.Failure{
		Reason:  v1alpha1.ReasonThrottled,
		Message: "the server asked for fewer requests",
		Remedy:  "nothing to do: the provider waits, longer each time",
	}
}

// meanings of the codes that S3 servers give, over and above their class.
var meanings = []meaning{
	{
		codes: []string{"InvalidAccessKeyId", "InvalidClientTokenId"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonCredentialsRefused,
			Message: "the server does not know the access key",
			Remedy:  "check accessKeyId in the Secret that the config names",
		},
	},
	{
		codes: []string{"SignatureDoesNotMatch"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonCredentialsRefused,
			Message: "the secret access key does not fit the access key",
			Remedy:  "check secretAccessKey in the Secret that the config names, and that no proxy changes paths or the Host header",
		},
	},
	{
		codes: []string{"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired", "InvalidSecurity", "NotSignedUp"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonCredentialsRefused,
			Message: "the temporary credentials have expired or are not valid",
			Remedy:  "renew accessKeyId, secretAccessKey and sessionToken in the Secret that the config names",
		},
	},
	{
		codes: []string{"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "SignatureExpired"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonClockSkew,
			Message: "the clocks of the provider and of the server differ too much",
			Remedy:  "set them by NTP",
		},
	},
	{
		codes: []string{"AccessDenied", "AllAccessDisabled", "AccountProblem", "UnauthorizedAccess", "Forbidden"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonForbidden,
			Message: "the server does not let the provider's user do this, or the name belongs to another account",
			Remedy:  "give the user the rights that docs/connect-s3.md lists, or choose another name",
		},
	},
	{
		codes: []string{"BucketAlreadyExists"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonNameTaken,
			Message: "a bucket of this name belongs to another account",
			Remedy:  "choose another name",
		},
	},
	{
		codes: []string{"BucketAlreadyOwnedByYou"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonConflict,
			Message: "a bucket of this name has appeared meanwhile",
			Remedy:  "nothing to do: the provider looks whose it is",
		},
	},
	{
		codes: []string{"OperationAborted", "ConditionalRequestConflict", "InvalidBucketState"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonConflict,
			Message: "the state of the bucket does not allow this now",
			Remedy:  "see whether another program changes the bucket; the provider tries again",
		},
	},
	{
		codes: []string{"NoSuchBucket"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonNotFound,
			Message: "the bucket is not there",
			Remedy:  "see whether another program deleted it",
		},
	},
	{
		codes: []string{"BucketNotEmpty"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonNotEmpty,
			Message: "the bucket holds something",
			Remedy:  "empty it, or set spec.forProvider.forceDestroy to true",
		},
	},
	{
		codes: []string{"InvalidBucketName"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: "the server does not accept the name of the bucket",
			Remedy:  "choose another one: the annotation crossplane.io/external-name of a new Bucket",
		},
	},
	{
		codes: []string{"TooManyBuckets"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: "the account has as many buckets as it may have",
			Remedy:  "delete some, or ask for a higher limit",
		},
	},
	{
		codes: []string{
			"SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable", "Busy", "TooManyRequests", "TooManyRequestsException",
			"Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled", "BandwidthLimitExceeded",
		},
		failure: *throttled(),
	},
	{
		codes: []string{"NotImplemented", "MethodNotAllowed", "VersioningNotConfigured", "XNotImplemented"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonNotImplemented,
			Message: "the server does not implement this",
			Remedy:  "take the feature out of the spec, or use a server that has it",
		},
	},
	{
		codes: []string{"MalformedPolicy", "MalformedPolicyDocument", "InvalidPolicyDocument"},
		failure: outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: "the server does not accept the policy",
			Remedy:  "correct spec.forProvider.policy",
		},
	},
}

func known(code string) (*outside.Failure, bool) {
	for _, m := range meanings {
		if slices.Contains(m.codes, code) {
			f := m.failure
			return &f, true
		}
	}
	return nil, false
}

func isPolicy(code string) bool { return strings.Contains(code, "Policy") }

// sentence is what is shown of a server's own words: no quotes, which could hold anything, and not the end of a text that is too
// long to be a reason.
var sentence = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ,.:;()*/_-]{0,199}$`)

// why a server does not like a policy, in its own words, if they are plain. Its code alone would leave people to guess.
func why(message string) string {
	if !sentence.MatchString(message) {
		return ""
	}
	return " (" + strings.TrimRight(message, ".") + ")"
}

// codeName is what may be shown of a code.
var codeName = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// byStatus explains an answer whose code says nothing, or is not known.
func byStatus(status int, code string) *outside.Failure {
	said := fmt.Sprintf("HTTP %d", status)
	if codeName.MatchString(code) {
		said = fmt.Sprintf("%s (HTTP %d)", code, status)
	}
	switch {
	case status == http.StatusUnauthorized:
		f, _ := known("InvalidAccessKeyId")
		f.Message = "the server does not accept the credentials"
		return f
	case status == http.StatusForbidden:
		f, _ := known("AccessDenied")
		return f
	case status == http.StatusTooManyRequests:
		return throttled()
	case status == http.StatusNotImplemented, status == http.StatusMethodNotAllowed:
		f, _ := known("NotImplemented")
		return f
	case status == http.StatusConflict, status == http.StatusPreconditionFailed:
		f, _ := known("OperationAborted")
		f.Message += ": " + said
		return f
	case status >= http.StatusInternalServerError:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonServerError,
			Message: "the server failed: " + said,
			Remedy:  "see the server's log; the provider tries again",
		}
	case status == http.StatusNotFound && code == "":
		// S3 servers say what is not there. Proxies do not.
		return &outside.Failure{
			Reason:  v1alpha1.ReasonUnknownAnswer,
			Message: "HTTP 404 that does not say what is missing",
			Remedy:  "check that the endpoint leads to the server and not to a proxy or a web page; nothing was changed because of this answer",
		}
	default:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: "the server does not accept the request: " + said,
			Remedy:  "correct what it complains about in spec.forProvider",
		}
	}
}
