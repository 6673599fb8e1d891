// SPDX-License-Identifier: Apache-2.0

// Package openlineagetest has a server for OpenLineage that holds events against the schemas that OpenLineage publishes.
package openlineagetest

import (
	"embed"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed testdata/*.json
var schemas embed.FS

// Where the schemas are in public.
const (
	urlOfEvents  = "https://openlineage.io/spec/2-0-2/OpenLineage.json"
	urlOfJobType = "https://openlineage.io/spec/facets/2-0-3/JobTypeJobFacet.json"
)

// A Server takes events on a loopback address.
type Server struct {
	URL string

	// Answer an event, or return false to take it. It is nil for a server that takes all.
	Answer func(w http.ResponseWriter, r *http.Request) bool

	mu     sync.Mutex
	bodies []string
}

// NewServer that ends with the test. An event that is none fails the test.
func NewServer(t *testing.T) *Server {
	t.Helper()
	event, facet := compile(t, urlOfEvents), compile(t, urlOfJobType)
	s := &Server{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("cannot read the event: %v", err)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/lineage" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("an event should be JSON that is posted to the endpoint, got %s %s", r.Method, r.URL.Path)
		}
		if s.Answer != nil && s.Answer(w, r) {
			return
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
		if err != nil {
			t.Errorf("the event is no JSON: %v", err)
		}
		if err := event.Validate(value); err != nil {
			t.Errorf("the event is not as the schema of events has it: %v", err)
		}
		m, _ := value.(map[string]any)
		job, _ := m["job"].(map[string]any)
		if err := facet.Validate(job["facets"]); err != nil {
			t.Errorf("the facets of the job are not as their schema has them: %v", err)
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

// Bodies of the events that were taken.
func (s *Server) Bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// compile a schema, and assert the formats of its texts, too.
func compile(t *testing.T, url string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(published{})
	s, err := c.Compile(url)
	if err != nil {
		t.Fatalf("cannot compile the schema: %v", err)
	}
	return s
}

// published schemas, from this package and not from the Internet.
type published struct{}

// Load a schema.
func (published) Load(url string) (any, error) {
	f, err := schemas.Open("testdata/" + url[strings.LastIndexByte(url, '/')+1:])
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the file.
	}
	defer f.Close()                    //nolint:errcheck // Nothing was written.
	return jsonschema.UnmarshalJSON(f) //nolint:wrapcheck // It says why.
}
