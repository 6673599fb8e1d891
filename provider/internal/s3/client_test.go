// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

func TestRequests(t *testing.T) {
	cases := map[string]struct {
		reason string
		config v1alpha1.S3Config
		region string

		// host, path and region that are signed for.
		want []string
	}{
		"Endpoint": {
			reason: "With an endpoint the bucket is in the path.",
			config: v1alpha1.S3Config{Endpoint: "http://s3.example.org:9000", Region: "here"},
			region: "here",
			want:   []string{"s3.example.org:9000", "/backups", "here"},
		},
		"EndpointWithPath": {
			reason: "A path of the endpoint stays.",
			config: v1alpha1.S3Config{Endpoint: "http://example.org/s3/", Region: "here"},
			region: "here",
			want:   []string{"example.org", "/s3/backups", "here"},
		},
		"VirtualHost": {
			reason: "Unless the config says otherwise.",
			config: v1alpha1.S3Config{Endpoint: "http://s3.example.org", PathStyle: aws.Bool(false)},
			region: "us-east-1",
			want:   []string{"backups.s3.example.org", "/", "us-east-1"},
		},
		"AWS": {
			reason: "Without an endpoint it is AWS.",
			config: v1alpha1.S3Config{Region: "eu-central-1"},
			region: "eu-central-1",
			want:   []string{"backups.s3.eu-central-1.amazonaws.com", "/", "eu-central-1"},
		},
		"OtherRegion": {
			reason: "A bucket may be in another region than the config's.",
			config: v1alpha1.S3Config{Region: "eu-central-1"},
			region: "us-west-2",
			want:   []string{"backups.s3.us-west-2.amazonaws.com", "/", "us-west-2"},
		},
		"AWSWithPath": {
			reason: "AWS knows both.",
			config: v1alpha1.S3Config{Region: "eu-central-1", PathStyle: aws.Bool(true)},
			region: "eu-central-1",
			want:   []string{"s3.eu-central-1.amazonaws.com", "/backups", "eu-central-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sent := &recorder{}
			c, err := New(&outside.Connection{
				S3: &tc.config, Key: outside.AccessKey{ID: "id", Secret: "secret", Session: "session"},
				HTTP: &http.Client{Transport: sent},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.In(tc.region).HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("backups")}); err != nil {
				t.Fatal(err)
			}
			r := sent.requests[0]
			scope := strings.Split(strings.Split(r.Header.Get("Authorization"), "Credential=")[1], "/")
			if diff := cmp.Diff(tc.want, []string{r.URL.Host, r.URL.Path, scope[2]}); diff != "" {
				t.Errorf("%s\n-want, +got host, path and region:\n%s", tc.reason, diff)
			}
			if scope[0] != "id" || r.Header.Get("X-Amz-Security-Token") != "session" {
				t.Errorf("%s\nsigned for %q with token %q", tc.reason, scope[0], r.Header.Get("X-Amz-Security-Token"))
			}
		})
	}
}

// recorder keeps requests and says yes.
type recorder struct{ requests []*http.Request }

func (t *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	t.requests = append(t.requests, r)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func TestConstraint(t *testing.T) {
	cases := map[string]struct {
		reason string
		config v1alpha1.S3Config
		asked  *string
		want   string
	}{
		"AWS":         {reason: "AWS wants to hear it.", config: v1alpha1.S3Config{Region: "eu-central-1"}, want: "eu-central-1"},
		"AWSMain":     {reason: "Except for its first.", config: v1alpha1.S3Config{Region: "us-east-1"}},
		"AWSAsked":    {reason: "The Bucket has the last word.", config: v1alpha1.S3Config{Region: "us-east-1"}, asked: aws.String("us-west-2"), want: "us-west-2"},
		"AWSEndpoint": {reason: "AWS by a name.", config: v1alpha1.S3Config{Endpoint: "https://s3.eu-central-1.amazonaws.com", Region: "eu-central-1"}, want: "eu-central-1"},
		"Other":       {reason: "Others know their region best.", config: v1alpha1.S3Config{Endpoint: "https://s3.example.org", Region: "here"}},
		"OtherAsked":  {reason: "Unless the Bucket asks for one.", config: v1alpha1.S3Config{Endpoint: "https://s3.example.org", Region: "here"}, asked: aws.String("there"), want: "there"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := New(&outside.Connection{S3: &tc.config, HTTP: &http.Client{}})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Constraint(tc.asked); got != tc.want {
				t.Errorf("%s\nConstraint(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	cases := map[string]struct {
		reason         string
		config, region string
		want           string
	}{
		"Config": {reason: "What the config says.", config: "https://s3.example.org", region: "here", want: "https://s3.example.org"},
		"AWS":    {reason: "What AWS says.", region: "eu-central-1", want: "https://s3.eu-central-1.amazonaws.com"},
		"China":  {reason: "Not all of AWS has the same domain.", region: "cn-north-1", want: "https://s3.cn-north-1.amazonaws.com.cn"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := New(&outside.Connection{S3: &v1alpha1.S3Config{Endpoint: tc.config}, HTTP: &http.Client{}})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.Endpoint(t.Context(), tc.region); err != nil || got != tc.want {
				t.Errorf("%s\nEndpoint(...): want %q, got %q, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

// TestSentOnce shows that nothing is sent twice: the controller tries again.
func TestSentOnce(t *testing.T) {
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(srv.Close)
	if err := head(t.Context(), client(t, srv.URL).In("us-east-1")); err == nil || n != 1 {
		t.Errorf("want one request and an error, got %d and %v", n, err)
	}
}

// TestBodies shows what servers want to see with a body.
func TestBodies(t *testing.T) {
	sent := &recorder{}
	c, err := New(&outside.Connection{
		S3: &v1alpha1.S3Config{Endpoint: "http://s3.example.org"}, Key: outside.AccessKey{ID: "id", Secret: "secret"},
		HTTP: &http.Client{Transport: sent},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.In("us-east-1").PutBucketTagging(t.Context(), &s3.PutBucketTaggingInput{
		Bucket: aws.String("backups"), Tagging: &types.Tagging{TagSet: []types.Tag{}},
	}); err != nil {
		t.Fatal(err)
	}
	if h := sent.requests[0].Header; h.Get("Content-Md5") == "" || h.Get("Content-Encoding") != "" {
		t.Errorf("a body has the headers %v", h)
	}
}
