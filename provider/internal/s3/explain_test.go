// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// an answer of a server.
type answer struct {
	status int
	body   string
	header map[string]string
}

// server that gives one answer to everything.
func server(t *testing.T, a answer) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range a.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body))
	}))
	t.Cleanup(srv.Close)
	return srv
}

// client of a server.
func client(t *testing.T, endpoint string) *Client {
	t.Helper()
	c, err := New(&outside.Connection{
		Backend: outside.S3,
		S3:      &v1alpha1.S3Config{Endpoint: endpoint},
		Key:     outside.AccessKey{ID: "id", Secret: "secret"},
		HTTP: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func failed(code string) string {
	return "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>" + code + "</Code>" +
		"<Message>Words of request 4711.</Message><RequestId>4711</RequestId></Error>"
}

func head(ctx context.Context, c *s3.Client) error {
	_, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String("backups")})
	return err
}

func get(ctx context.Context, c *s3.Client) error {
	_, err := c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: aws.String("backups")})
	return err
}

func getPolicy(ctx context.Context, c *s3.Client) error {
	_, err := c.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: aws.String("backups")})
	return err
}

func create(ctx context.Context, c *s3.Client) error {
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("backups")})
	return err
}

func TestExplain(t *testing.T) {
	cases := map[string]struct {
		reason  string
		answer  answer
		call    func(context.Context, *s3.Client) error
		want    xpv2.ConditionReason
		message string
		refused bool
	}{
		"UnknownKey": {
			reason: "The key is not known.", call: get, answer: answer{status: 403, body: failed("InvalidAccessKeyId")},
			want: v1alpha1.ReasonCredentialsRefused, message: "the server does not know the access key", refused: true,
		},
		"WrongKey": {
			reason: "The key does not fit.", call: get, answer: answer{status: 403, body: failed("SignatureDoesNotMatch")},
			want: v1alpha1.ReasonCredentialsRefused, message: "the secret access key does not fit the access key", refused: true,
		},
		"Expired": {
			reason: "Temporary credentials end.", call: get, answer: answer{status: 400, body: failed("ExpiredToken")},
			want: v1alpha1.ReasonCredentialsRefused, message: "the temporary credentials have expired or are not valid", refused: true,
		},
		"InvalidToken": {
			reason: "A session token that is none.", call: get, answer: answer{status: 400, body: failed("InvalidToken")},
			want: v1alpha1.ReasonCredentialsRefused, message: "the temporary credentials have expired or are not valid", refused: true,
		},
		"Unauthorized": {
			reason: "A server that says it by HTTP.", call: head, answer: answer{status: 401},
			want: v1alpha1.ReasonCredentialsRefused, message: "the server does not accept the credentials", refused: true,
		},
		"Skew": {
			reason: "The clocks differ.", call: get, answer: answer{status: 403, body: failed("RequestTimeTooSkewed")},
			want: v1alpha1.ReasonClockSkew, message: "the clocks of the provider and of the server differ too much", refused: true,
		},
		"Denied": {
			reason: "The right that is missing has the operation's name.", call: get, answer: answer{status: 403, body: failed("AccessDenied")},
			want:    v1alpha1.ReasonForbidden,
			message: "GetBucketTagging: the server does not let the provider's user do this, or the name belongs to another account", refused: true,
		},
		"DeniedWithoutWords": {
			reason: "HEAD has no body.", call: head, answer: answer{status: 403},
			want:    v1alpha1.ReasonForbidden,
			message: "HeadBucket: the server does not let the provider's user do this, or the name belongs to another account", refused: true,
		},
		"BadRequestWithoutWords": {
			reason: "HEAD has no body.", call: head, answer: answer{status: 400},
			want: v1alpha1.ReasonRejected, message: "the server does not accept the request: HTTP 400", refused: true,
		},
		"MissingWithoutWords": {
			reason: "404 alone says nothing about a bucket.", call: head, answer: answer{status: 404},
			want: v1alpha1.ReasonUnknownAnswer, message: "HTTP 404 that does not say what is missing", refused: true,
		},
		"Missing": {
			reason: "The bucket is not there.", call: get, answer: answer{status: 404, body: failed("NoSuchBucket")},
			want: v1alpha1.ReasonNotFound, message: "the bucket is not there", refused: true,
		},
		"OtherRegion": {
			reason: "The right one is in the header.", call: head,
			answer:  answer{status: 301, header: map[string]string{"X-Amz-Bucket-Region": "eu-central-1"}},
			want:    v1alpha1.ReasonRejected,
			message: `the bucket, or the server, is in region "eu-central-1"`, refused: true,
		},
		"OtherRegionInWords": {
			reason: "Or in the message.", call: get,
			answer: answer{status: 400, body: "<Error><Code>AuthorizationHeaderMalformed</Code>" +
				"<Message>The authorization header is malformed; the region 'x' is wrong; expecting 'here'</Message></Error>"},
			want: v1alpha1.ReasonRejected, message: `the bucket, or the server, is in region "here"`, refused: true,
		},
		"OtherRegionWithWordsOfAnotherKind": {
			reason: "What is no region is not shown.", call: head,
			answer:  answer{status: 301, header: map[string]string{"X-Amz-Bucket-Region": "<script>"}},
			want:    v1alpha1.ReasonRejected,
			message: "the bucket, or the server, is in another region", refused: true,
		},
		"Constraint": {
			reason: "A server with one region.", call: create, answer: answer{status: 400, body: failed("IllegalLocationConstraintException")},
			want: v1alpha1.ReasonRejected, message: "the bucket, or the server, is in another region", refused: true,
		},
		"Taken": {
			reason: "The name is another account's.", call: create, answer: answer{status: 409, body: failed("BucketAlreadyExists")},
			want: v1alpha1.ReasonNameTaken, message: "a bucket of this name belongs to another account", refused: true,
		},
		"TakenByUs": {
			reason: "This is no success.", call: create, answer: answer{status: 409, body: failed("BucketAlreadyOwnedByYou")},
			want: v1alpha1.ReasonConflict, message: "a bucket of this name has appeared meanwhile", refused: true,
		},
		"NotEmpty": {
			reason: "The server refuses to delete.", call: get, answer: answer{status: 409, body: failed("BucketNotEmpty")},
			want: v1alpha1.ReasonNotEmpty, message: "the bucket holds something", refused: true,
		},
		"BadName": {
			reason: "A server with rules of its own.", call: create, answer: answer{status: 400, body: failed("InvalidBucketName")},
			want: v1alpha1.ReasonRejected, message: "the server does not accept the name of the bucket", refused: true,
		},
		"BadPolicy": {
			reason: "A policy without the reason would be a riddle.", call: get,
			answer:  answer{status: 400, body: "<Error><Code>MalformedPolicy</Code><Message>Policy has invalid resource.</Message></Error>"},
			want:    v1alpha1.ReasonRejected,
			message: "the server does not accept the policy (Policy has invalid resource)", refused: true,
		},
		"BadPolicyWithQuotes": {
			reason: "What quotes something may quote anything.", call: get,
			answer: answer{status: 400, body: "<Error><Code>MalformedPolicy</Code><Message>Bad: \"hunter2\"</Message></Error>"},
			want:   v1alpha1.ReasonRejected, message: "the server does not accept the policy", refused: true,
		},
		"Malformed": {
			reason: "The code is all that is shown.", call: get, answer: answer{status: 400, body: failed("MalformedXML")},
			want: v1alpha1.ReasonRejected, message: "the server does not accept the request: MalformedXML (HTTP 400)", refused: true,
		},
		"MalformedCode": {
			reason: "A code that is none is not shown.", call: get, answer: answer{status: 400, body: failed("a b; hunter2")},
			want: v1alpha1.ReasonRejected, message: "the server does not accept the request: HTTP 400", refused: true,
		},
		"SlowDown": {
			reason: "Fewer requests.", call: get, answer: answer{status: 503, body: failed("SlowDown")},
			want: v1alpha1.ReasonThrottled, message: "the server asked for fewer requests",
		},
		"TooMany": {
			reason: "Fewer requests, by HTTP.", call: head, answer: answer{status: 429},
			want: v1alpha1.ReasonThrottled, message: "the server asked for fewer requests", refused: true,
		},
		"TooManyPage": {
			reason: "Fewer requests, by a proxy.", call: get, answer: answer{status: 429, body: "<html>Slow down</html>"},
			want: v1alpha1.ReasonThrottled, message: "the server asked for fewer requests",
		},
		"Unavailable": {
			reason: "A server that is down is not one that is overworked.", call: head, answer: answer{status: 503},
			want: v1alpha1.ReasonServerError, message: "the server failed: HTTP 503",
		},
		"Internal": {
			reason: "The server fails.", call: get, answer: answer{status: 500, body: failed("InternalError")},
			want: v1alpha1.ReasonServerError, message: "the server failed: InternalError (HTTP 500)",
		},
		"BadGateway": {
			reason: "A proxy fails.", call: get, answer: answer{status: 502, body: "<html><h1>Bad Gateway</h1></html>"},
			want: v1alpha1.ReasonServerError, message: "the server, or a proxy before it, failed: HTTP 502 with HTML",
		},
		"NotImplemented": {
			reason: "A feature that is not there.", call: get, answer: answer{status: 501, body: failed("NotImplemented")},
			want: v1alpha1.ReasonNotImplemented, message: "GetBucketTagging: the server does not implement this", refused: true,
		},
		"MethodNotAllowed": {
			reason: "A feature that is not there, in other words.", call: get, answer: answer{status: 405, body: failed("MethodNotAllowed")},
			want: v1alpha1.ReasonNotImplemented, message: "GetBucketTagging: the server does not implement this", refused: true,
		},
		"IgnoresTheQuestion": {
			reason: "A server that lists the bucket, whatever it is asked.", call: get,
			answer: answer{status: 200, body: "<ListBucketResult><Name>backups</Name></ListBucketResult>"},
			want:   v1alpha1.ReasonNotImplemented, message: "the server does not know this request and answers with the list of the bucket",
		},
		"Conflict": {
			reason: "Two at the same time.", call: get, answer: answer{status: 409, body: failed("OperationAborted")},
			want: v1alpha1.ReasonConflict, message: "the state of the bucket does not allow this now", refused: true,
		},
		"Page": {
			reason: "A page is no answer.", call: get, answer: answer{status: 200, body: "<!doctype html>\n<title>Log in</title>"},
			want: v1alpha1.ReasonUnknownAnswer, message: "the answer is not one of an S3 server: HTTP 200 with HTML",
		},
		"CreatedByAPage": {
			reason: "Nor is it when something was to be done.", call: create, answer: answer{status: 200, body: "<html>Log in</html>"},
			want: v1alpha1.ReasonUnknownAnswer, message: "the answer is not one of an S3 server: HTTP 200 with HTML",
		},
		"JSON": {
			reason: "JSON is no answer.", call: get, answer: answer{status: 403, body: `{"message": "no"}`},
			want: v1alpha1.ReasonUnknownAnswer, message: "the answer is not one of an S3 server: HTTP 403 with JSON",
		},
		"Text": {
			reason: "Text is no answer.", call: get, answer: answer{status: 404, body: "404 page not found"},
			want: v1alpha1.ReasonUnknownAnswer, message: "the answer is not one of an S3 server: HTTP 404 with text",
		},
		"Nothing": {
			reason: "Nothing is no answer.", call: get, answer: answer{status: 200},
			want: v1alpha1.ReasonUnknownAnswer, message: "the answer is not one of an S3 server: HTTP 200 with nothing",
		},
		"Half": {
			reason: "Half a document is no answer.", call: get, answer: answer{status: 200, body: "<Tagging><TagSet>"},
			want:    v1alpha1.ReasonUnknownAnswer,
			message: "the answer is not one of an S3 server: HTTP 200 with XML that ends too early or is not well formed",
		},
		"ErrorThatSucceeds": {
			reason: "An error is no success.", call: get, answer: answer{status: 200, body: failed("InternalError")},
			want: v1alpha1.ReasonUnknownAnswer, message: "the answer is not one of an S3 server: HTTP 200 with an error",
		},
		"PolicyThatIsNone": {
			reason: "A policy is JSON.", call: getPolicy, answer: answer{status: 200, body: "<ListBucketResult/>"},
			want: v1alpha1.ReasonUnknownAnswer, message: "the answer is not one of an S3 server: HTTP 200 with XML",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.call(t.Context(), client(t, server(t, tc.answer).URL).In("us-east-1"))
			f := Explain(err)
			if f == nil {
				t.Fatalf("%s\nExplain(%v): want a failure, got none", tc.reason, err)
			}
			if diff := cmp.Diff([]any{tc.want, tc.message}, []any{f.Reason, f.Message}); diff != "" {
				t.Errorf("%s\nExplain(...): -want, +got:\n%s", tc.reason, diff)
			}
			if f.Remedy == "" || strings.Contains(f.Error(), "4711") || strings.Contains(f.Error(), "hunter2") {
				t.Errorf("%s\nExplain(...): %q has no remedy or says what it should not", tc.reason, f.Error())
			}
			if !errors.Is(f, err) {
				t.Errorf("%s\nExplain(...): the cause is lost", tc.reason)
			}
			if got := Refused(err); got != tc.refused {
				t.Errorf("%s\nRefused(%v): want %t, got %t", tc.reason, err, tc.refused, got)
			}
		})
	}
}

func TestExplainOthers(t *testing.T) {
	if f := Explain(errors.New("boom")); f != nil {
		t.Errorf("Explain of an error that is no answer: want nil, got %v", f)
	}
	f := &outside.Failure{Reason: v1alpha1.ReasonNotEmpty}
	if got := Explain(fmt.Errorf("cannot delete: %w", f)); got != f {
		t.Errorf("Explain of a failure: want the same, got %v", got)
	}
}

func TestAsk(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer answer
		want   bool
	}{
		"Listed": {
			reason: "The server knows us.", want: true,
			answer: answer{status: 200, body: "<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>"},
		},
		"Denied": {
			reason: "It knows us and lets us have no list.", want: true,
			answer: answer{status: 403, body: failed("AccessDenied")},
		},
		"Unknown": {reason: "It does not know us.", answer: answer{status: 403, body: failed("InvalidAccessKeyId")}},
		"Proxy":   {reason: "It is somebody else.", answer: answer{status: 403, body: "<html>no</html>"}},
		"Nobody":  {reason: "403 alone tells nothing about us.", answer: answer{status: 403}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Service()
			if err := s.Ask(t.Context(), client(t, server(t, tc.answer).URL)); (err == nil) != tc.want {
				t.Errorf("%s\nAsk(...): %v", tc.reason, err)
			}
		})
	}
}
