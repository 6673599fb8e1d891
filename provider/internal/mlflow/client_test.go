// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// A said request is what the server was told.
type said struct {
	Method, Path, Query, Type, Authorization, Body string
}

// serve answers to requests, in turn, and notes them.
func serve(t *testing.T, answers ...string) (*Client, *[]said) {
	t.Helper()
	var all []said
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		all = append(all, said{
			r.Method, r.URL.Path, r.URL.Query().Encode(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(body),
		})
		if _, err := io.WriteString(w, answers[min(len(all), len(answers))-1]); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	c, err := New(&outside.Connection{
		MLflow:    &v1alpha1.MLflowConfig{URL: s.URL + "/base path/", AllowedSources: []string{"s3://models/"}},
		HTTP:      s.Client(),
		Authorize: func(r *http.Request) { r.Header.Set("Authorization", "Bearer t") },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, &all
}

// TestRequests shows what each operation sends: GET has a query, everything else JSON, and the URL's own path stays.
func TestRequests(t *testing.T) {
	ctx := t.Context()
	model, version := `{"registered_model": {"name": "a b"}}`, `{"model_version": {"name": "a b", "version": "7"}}`
	cases := map[string]struct {
		answer string
		do     func(*Client) error
		want   said
	}{
		"Ask":         {"{}", func(c *Client) error { return ask(ctx, c) }, said{Method: "GET", Path: "registered-models/search", Query: "max_results=1"}},
		"Model":       {model, func(c *Client) error { _, err := c.Model(ctx, "a b"); return err }, said{Method: "GET", Path: "registered-models/get", Query: "name=a+b"}},
		"CreateModel": {model, func(c *Client) error { return c.CreateModel(ctx, Model{Name: "a", Tags: Tags{"z": "1", "k": ""}}) }, said{Method: "POST", Path: "registered-models/create", Body: `{"name":"a","tags":[{"key":"k","value":""},{"key":"z","value":"1"}]}`}},
		"Describe":    {model, func(c *Client) error { return c.DescribeModel(ctx, "a", "") }, said{Method: "PATCH", Path: "registered-models/update", Body: `{"name":"a","description":""}`}},
		"DeleteModel": {"{}", func(c *Client) error { return c.DeleteModel(ctx, "a") }, said{Method: "DELETE", Path: "registered-models/delete", Body: `{"name":"a"}`}},
		"SetTag":      {"{}", func(c *Client) error { return c.SetModelTag(ctx, "a", "k", "") }, said{Method: "POST", Path: "registered-models/set-tag", Body: `{"name":"a","key":"k","value":""}`}},
		"DeleteTag":   {"{}", func(c *Client) error { return c.DeleteModelTag(ctx, "a", "k") }, said{Method: "DELETE", Path: "registered-models/delete-tag", Body: `{"name":"a","key":"k"}`}},
		"SetAlias":    {"{}", func(c *Client) error { return c.SetAlias(ctx, "a", "x", "7") }, said{Method: "POST", Path: "registered-models/alias", Body: `{"name":"a","alias":"x","version":"7"}`}},
		"DeleteAlias": {"{}", func(c *Client) error { return c.DeleteAlias(ctx, "a", "x") }, said{Method: "DELETE", Path: "registered-models/alias", Body: `{"name":"a","alias":"x"}`}},
		"Version":     {version, func(c *Client) error { _, err := c.Version(ctx, "a b", "7"); return err }, said{Method: "GET", Path: "model-versions/get", Query: "name=a+b&version=7"}},
		"CreateVersion": {version, func(c *Client) error {
			_, err := c.CreateVersion(ctx, Version{Name: "a b", Source: "s3://x", Tags: Tags{"k": "v"}})
			return err
		}, said{Method: "POST", Path: "model-versions/create", Body: `{"name":"a b","source":"s3://x","tags":[{"key":"k","value":"v"}]}`}},
		"DescribeVersion":  {version, func(c *Client) error { return c.DescribeVersion(ctx, "a", "7", "d") }, said{Method: "PATCH", Path: "model-versions/update", Body: `{"name":"a","version":"7","description":"d"}`}},
		"DeleteVersion":    {"{}", func(c *Client) error { return c.DeleteVersion(ctx, "a", "7") }, said{Method: "DELETE", Path: "model-versions/delete", Body: `{"name":"a","version":"7"}`}},
		"SetVersionTag":    {"{}", func(c *Client) error { return c.SetVersionTag(ctx, "a", "7", "k", "v") }, said{Method: "POST", Path: "model-versions/set-tag", Body: `{"name":"a","version":"7","key":"k","value":"v"}`}},
		"DeleteVersionTag": {"{}", func(c *Client) error { return c.DeleteVersionTag(ctx, "a", "7", "k") }, said{Method: "DELETE", Path: "model-versions/delete-tag", Body: `{"name":"a","version":"7","key":"k"}`}},
		"ArtifactURI":      {`{"artifact_uri": "s3://x"}`, func(c *Client) error { _, err := c.ArtifactURI(ctx, "a", "7"); return err }, said{Method: "GET", Path: "model-versions/get-download-uri", Query: "name=a&version=7"}},
		"Search": {"{}", func(c *Client) error { _, err := c.VersionsTagged(ctx, "a", "o/w.n", "v"); return err }, said{
			Method: "GET", Path: "model-versions/search", Query: "filter=name+%3D+%27a%27+AND+tags.%60o%2Fw.n%60+%3D+%27v%27&max_results=100",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, all := serve(t, tc.answer)
			if err := tc.do(c); err != nil {
				t.Fatal(err)
			}
			tc.want.Path = "/base path/api/2.0/mlflow/" + tc.want.Path
			tc.want.Authorization = "Bearer t"
			if tc.want.Method != http.MethodGet {
				tc.want.Type = "application/json"
			}
			if diff := cmp.Diff([]said{tc.want}, *all); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestSearchPages shows that a search reads all pages, keeps what is exactly what was asked for, and ends.
func TestSearchPages(t *testing.T) {
	page := `{"model_versions": [{"name": "a", "version": %d, "tags": [{"key": "k", "value": "%s"}]}], "next_page_token": "%s"}`
	c, all := serve(t, fmt.Sprintf(page, 3, "v", "2"), fmt.Sprintf(page, 2, "V", "3"), `{"next_page_token": "4"}`, fmt.Sprintf(page, 1, "v", ""))
	got, err := c.VersionsTagged(t.Context(), "a", "k", "v")
	if err != nil {
		t.Fatal(err)
	}
	want := []Version{{Name: "a", Version: "3", Tags: Tags{"k": "v"}}, {Name: "a", Version: "1", Tags: Tags{"k": "v"}}}
	if diff := cmp.Diff(want, got); diff != "" || len(*all) != 4 || !strings.Contains((*all)[3].Query, "page_token=4") {
		t.Errorf("%d requests; -want, +got:\n%s", len(*all), diff)
	}
	c, all = serve(t, fmt.Sprintf(page, 3, "v", "again"))
	if _, err := c.Versions(t.Context(), "a"); err == nil || len(*all) != maxPages {
		t.Errorf("A list that does not end must be an error, got %v after %d requests", err, len(*all))
	}
}

// TestSearchQuotes shows that nobody can end the quotes of a filter.
func TestSearchQuotes(t *testing.T) {
	for _, name := range []string{`a' OR name != 'a`, `a"b`, "a`b", `a\`} {
		c, all := serve(t, "{}")
		_, err := c.Versions(t.Context(), name)
		_, errTagged := c.VersionsTagged(t.Context(), "a", "k", name)
		if err == nil || errTagged == nil || len(*all) > 0 {
			t.Errorf("%q must not be sent, got %v, %v, %v", name, err, errTagged, *all)
		}
	}
}

// TestAnswers shows what is taken for an answer.
func TestAnswers(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   string
		ok     bool
	}{
		"Good":         {reason: "The registry's own.", body: `{"registered_model": {"name": "a"}}`, ok: true},
		"More":         {reason: "Newer servers say more.", body: `{"registered_model": {"name": "a", "deployment_job_id": 1, "aliases": [{"alias": "x", "version": 12}]}}`, ok: true},
		"Null":         {reason: "Nothing is no answer.", body: `null`},
		"Empty":        {reason: "Nothing is no answer.", body: ``},
		"NoModel":      {reason: "An answer about nothing.", body: `{}`},
		"OtherModel":   {reason: "An answer about something else.", body: `{"registered_model": {"name": "A"}}`},
		"Page":         {reason: "A login page.", body: `<html></html>`},
		"Half":         {reason: "Half an answer.", body: `{"registered_model": {"name": "a"}`},
		"Two":          {reason: "More than an answer.", body: `{"registered_model": {"name": "a"}} {}`},
		"WrongType":    {reason: "Something else has such fields.", body: `{"registered_model": {"name": "a", "tags": {"k": "v"}}}`},
		"WrongVersion": {reason: "A version is a number.", body: `{"registered_model": {"name": "a", "aliases": [{"alias": "x", "version": "1' OR"}]}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, tc.body)
			_, err := c.Model(t.Context(), "a")
			if (err == nil) != tc.ok {
				t.Fatalf("\n%s\nModel(...): got %v", tc.reason, err)
			}
			if err != nil && (Explain(err) == nil || Explain(err).Reason != v1alpha1.ReasonUnknownAnswer) {
				t.Errorf("\n%s\nExplain(...): got %v", tc.reason, Explain(err))
			}
		})
	}
}

// TestDone shows that a change has been made only when the registry says so: a page that comes with a good status does not.
func TestDone(t *testing.T) {
	for body, want := range map[string]bool{"{}": true, "{\n}": true, "<html></html>": false, "null": false, "[]": false, "": false, "{": false} {
		c, _ := serve(t, body)
		if err := c.SetModelTag(t.Context(), "a", "k", "v"); (err == nil) != want {
			t.Errorf("%q: want %t, got %v", body, want, err)
		}
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]Number{`7`: "7", `"7"`: "7", `9223372036854775807`: "9223372036854775807", `"12"`: "12"} {
		var got Number
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: want %q, got %q, %v", text, want, got, err)
		}
	}
	for _, text := range []string{`-1`, `1.5`, `1e3`, `""`, `"a"`, `true`, `{}`, `"99999999999999999999"`} {
		var got Number
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s must be refused, got %q", text, got)
		}
	}
}

func TestNew(t *testing.T) {
	for name, c := range map[string]*outside.Connection{
		"NotMLflow": {},
		"NoURL":     {MLflow: &v1alpha1.MLflowConfig{URL: "mlflow"}},
		"BadURL":    {MLflow: &v1alpha1.MLflowConfig{URL: "https://a b/%zz"}},
	} {
		_, err := New(c)
		if f := (*outside.Failure)(nil); !errors.As(err, &f) || f.Reason != v1alpha1.ReasonInvalidConfig {
			t.Errorf("%s: want %s, got %v", name, v1alpha1.ReasonInvalidConfig, err)
		}
	}
}

// TestLarge shows that requests are bounded.
func TestLarge(t *testing.T) {
	c, all := serve(t, "{}")
	err := c.SetModelTag(context.Background(), "a", "k", strings.Repeat("x", maxRequest))
	if f := (*outside.Failure)(nil); !errors.As(err, &f) || len(*all) > 0 {
		t.Errorf("It must not be sent, got %v", err)
	}
}
