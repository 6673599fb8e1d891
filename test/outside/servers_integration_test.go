// SPDX-License-Identifier: Apache-2.0

//go:build integration

package outside

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

func TestS3KeepsDataOverOutage(t *testing.T) {
	srv := S3(t)
	c, ctx, bucket := client(srv), t.Context(), aws.String("kept")
	if _, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket}); err != nil {
		t.Fatal(err)
	}
	put := func(body string) {
		t.Helper()
		if _, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("a/b"), Body: strings.NewReader(body)}); err != nil {
			t.Fatal(err)
		}
	}
	put("before versions")
	if _, err := c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	}); err != nil {
		t.Fatal(err)
	}
	put("after")

	srv.Stop()
	if _, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a server that was stopped answers: %v", err)
	}
	srv.Start()
	versions, err := c.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	if len(versions.Versions) != 2 {
		t.Errorf("after the outage there are %d versions of an object, want 2", len(versions.Versions))
	}
}

func TestS3Accounts(t *testing.T) {
	srv := SharedS3(t)
	srv.AddUser("second", "second-secret")
	ctx, bucket := t.Context(), aws.String("accounts-root")
	root, second := client(srv), clientOf(srv.Endpoint, srv.CA, "second", "second-secret")
	if _, err := root.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket}); err != nil {
		t.Fatal(err)
	}
	create := func(c *s3.Client, name string) error {
		_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(name)})
		return err
	}
	head := func(c *s3.Client, name string) error {
		_, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String(name)})
		return err
	}
	list := func(access, secret string) error {
		_, err := clientOf(srv.Endpoint, srv.CA, access, secret).ListBuckets(ctx, &s3.ListBucketsInput{})
		return err
	}
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Taken":       {"The name of somebody else's bucket is taken.", create(second, *bucket), "BucketAlreadyExists"},
		"Forbidden":   {"Somebody else's bucket cannot be looked at; a HEAD has no body to say why.", head(second, *bucket), "Forbidden"},
		"Missing":     {"A bucket that is not there.", head(second, "accounts-none"), "NotFound"},
		"Own":         {"An account makes buckets of its own.", create(second, "accounts-second"), ""},
		"OwnAgain":    {"A name can be taken by oneself.", create(second, "accounts-second"), "BucketAlreadyOwnedByYou"},
		"WrongSecret": {"A wrong secret spoils the signature.", list(srv.AccessKey, "wrong"), "SignatureDoesNotMatch"},
		"UnknownKey":  {"A key that nobody has.", list("nobody", "wrong"), "InvalidAccessKeyId"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, code(tc.err)); diff != "" {
				t.Errorf("%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestS3BehindProxy(t *testing.T) {
	srv := SharedS3(t)
	p := Proxy(t, srv.Endpoint, srv.CA)
	ctx, bucket := t.Context(), aws.String("behind-proxy")
	c := clientOf(p.URL, p.CA, srv.AccessKey, srv.SecretKey)
	p.Fail(Call("PUT /behind-proxy"), Drop().Times(1))
	if _, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket}); err == nil {
		t.Error("the client heard of a success that the proxy kept to itself")
	}
	if _, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket}); err != nil {
		t.Errorf("a request whose answer was dropped has not been done, or its signature does not survive the proxy: %v", err)
	}
	p.Fail(Call("HEAD /behind-proxy"), S3Error(503, "SlowDown", "Slow down."))
	if _, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket}); err == nil {
		t.Error("a fault that lasts for ever has had no effect")
	}
	want := []string{"PUT /behind-proxy", "HEAD /behind-proxy", "HEAD /behind-proxy"}
	if diff := cmp.Diff(want, p.Requests()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestMLflowAnswers(t *testing.T) {
	srv := SharedMLflow(t)
	model := srv.Log("answers", map[string]string{"team": "risk"})
	if again := srv.Log("answers", nil); model.Version != "1" || again.Version != "2" || again.RunID == model.RunID {
		t.Errorf("two runs are logged as %+v and %+v", model, again)
	}
	cases := map[string]struct {
		reason             string
		method, path, body string
		change             func(*http.Request)
		status             int
		contains           string
	}{
		"Get": {
			reason: "The version that was logged is READY.",
			method: http.MethodGet, path: "model-versions/get?name=answers&version=1", status: 200, contains: `"status": "READY"`,
		},
		"Exists": {
			reason: "A name that is taken is a bad request.", method: http.MethodPost, path: "registered-models/create",
			body: `{"name": "answers"}`, status: 400, contains: "RESOURCE_ALREADY_EXISTS",
		},
		"NoModel": {
			reason: "A model that is not there.", method: http.MethodGet, path: "registered-models/get?name=none",
			status: 404, contains: "RESOURCE_DOES_NOT_EXIST",
		},
		"NoAlias": {
			reason: "An alias that is not there is a bad request.", method: http.MethodGet,
			path: "registered-models/alias?name=answers&alias=none", status: 400, contains: "INVALID_PARAMETER_VALUE",
		},
		"OtherHost": {
			reason: "A Host that is not allowed is refused, in plain text, before anybody is asked who they are.",
			method: http.MethodGet, path: "registered-models/get?name=answers",
			change: func(r *http.Request) { r.Host = "mlflow.example.org" }, status: 403, contains: "Invalid Host header",
		},
		"Anonymous": {
			reason: "Who does not say who they are is asked to, in plain text.",
			method: http.MethodGet, path: "registered-models/get?name=answers",
			change: func(r *http.Request) { r.Header.Del("Authorization") }, status: 401, contains: "not authenticated",
		},
		"WrongPassword": {
			reason: "A wrong password is nobody.", method: http.MethodGet, path: "registered-models/get?name=answers",
			change: func(r *http.Request) { r.SetBasicAuth(srv.Username, "wrong") }, status: 401, contains: "not authenticated",
		},
		"NoRights": {
			reason: "Somebody without rights sees no model.", method: http.MethodGet, path: "registered-models/get?name=answers",
			change: func(r *http.Request) { r.SetBasicAuth(srv.OtherUsername, srv.OtherPassword) }, status: 403, contains: "Permission denied",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, srv.URL+"/api/2.0/mlflow/"+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.SetBasicAuth(srv.Username, srv.Password)
			if tc.change != nil {
				tc.change(req)
			}
			status, body := send(t, req, srv.CA)
			if status != tc.status || !strings.Contains(body, tc.contains) {
				t.Errorf("%s\nwant %d with %q, got %d: %s", tc.reason, tc.status, tc.contains, status, body)
			}
		})
	}
}

func TestMLflowKeepsDataOverOutage(t *testing.T) {
	srv := MLflow(t)
	srv.Log("kept", nil)
	srv.Stop()
	if resp, err := Client(srv.CA).Get(srv.URL + "/health"); err == nil {
		_ = resp.Body.Close()
		t.Error("a server that was stopped answers")
	}
	srv.Start()
	if status, body := srv.Call(http.MethodGet, "model-versions/get?name=kept&version=1", nil); status != http.StatusOK {
		t.Errorf("after the outage: %d: %s", status, body)
	}
	// The second account still exists, and is not created again.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/api/2.0/mlflow/registered-models/get?name=kept", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(srv.OtherUsername, srv.OtherPassword)
	if status, body := send(t, req, srv.CA); status != http.StatusForbidden {
		t.Errorf("somebody without rights gets %d: %s", status, body)
	}
}

func TestMLflowBehindProxy(t *testing.T) {
	srv := SharedMLflow(t)
	p := Proxy(t, srv.URL, srv.CA)
	create := func() *http.Request {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/api/2.0/mlflow/registered-models/create",
			strings.NewReader(`{"name": "behind-proxy"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.SetBasicAuth(srv.Username, srv.Password)
		return req
	}
	p.Fail(Call("POST /api/2.0/mlflow/registered-models/create"), Drop().Times(1))
	if resp, err := Client(p.CA).Do(create()); err == nil {
		_ = resp.Body.Close()
		t.Error("the client heard of a success that the proxy kept to itself")
	}
	if status, body := send(t, create(), p.CA); status != 400 || !strings.Contains(body, "RESOURCE_ALREADY_EXISTS") {
		t.Errorf("a request whose answer was dropped has not been done: %d: %s", status, body)
	}
}

func TestMLflowOpen(t *testing.T) {
	srv := MLflowOpen(t)
	if logged := srv.Log("open", nil); logged.Version != "1" {
		t.Errorf("the first version is %q", logged.Version)
	}
	// The server checks the host before the user.
	p := Proxy(t, srv.URL, srv.CA)
	p.Fail(func(r *http.Request) bool { return r.Header.Get("Authorization") != "Bearer token" }, Answer(401, "who are you?"))
	for token, want := range map[string]int{"token": 200, "other": 401} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/api/2.0/mlflow/registered-models/get?name=open", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		if status, body := send(t, req, p.CA); status != want {
			t.Errorf("token %q: want %d, got %d: %s", token, want, status, body)
		}
	}
}

func TestAPIServer(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ctrlclient.New(SharedAPIServer(t), ctrlclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}); err != nil {
		t.Fatal(err)
	}
	var crds apiextensions.CustomResourceDefinitionList
	if err := c.List(t.Context(), &crds); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(crds.Items, func(crd apiextensions.CustomResourceDefinition) bool {
		return crd.Name == "credentials.credentials.capstan.dev"
	}) {
		t.Errorf("the provider's CRDs are not there: %d others are", len(crds.Items))
	}
}

// send returns status and body of a response.
func send(t *testing.T, req *http.Request, authority []byte) (int, string) {
	t.Helper()
	transport := transport(authority)
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
