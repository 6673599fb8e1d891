// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// What an answer can be instead of what S3 says.
const (
	nothing   = "nothing"
	html      = "HTML"
	text      = "text"
	jsonText  = "JSON"
	brokenXML = "XML that ends too early or is not well formed"
	listing   = "the list of the bucket"
	anError   = "an error"
)

// A StrangeError means that another program answered, which does not speak S3, or does not know the request.
type StrangeError struct {
	// Status of the answer.
	Status int

	// Was is what the answer consists of, for people: HTML, say.
	Was string
}

// Error contains nothing of what is in the answer.
func (e *StrangeError) Error() string { return fmt.Sprintf("HTTP %d with %s", e.Status, e.Was) }

// suspicious reads answers to their end and looks whether they can be true. The
// SDK would take nothing, or anything that is XML, for a document without content:
// a bucket without tags, rules or versions.
type suspicious struct {
	inner *http.Client
}

// Do sends a request.
func (s *suspicious) Do(r *http.Request) (*http.Response, error) {
	res, err := s.inner.Do(r)
	if err != nil || r.Method == http.MethodHead {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer: %w", err)
	}
	if was := strange(r, res.StatusCode, body); was != "" {
		return nil, &StrangeError{Status: res.StatusCode, Was: was}
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	res.ContentLength = int64(len(body))
	return res, nil
}

// strange says what an answer is when it is none of S3, or "".
func strange(r *http.Request, status int, body []byte) string {
	query := r.URL.Query()
	success := status >= 200 && status < 300
	asks := success && r.Method == http.MethodGet
	content := bytes.TrimSpace(body)
	if len(content) == 0 {
		// What is requested cannot be nothing; deletions in one request report each result.
		if asks || success && query.Has("delete") {
			return nothing
		}
		return ""
	}
	if asks && query.Has("policy") {
		return noPolicy(content)
	}
	if content[0] != '<' || isHTML(content) {
		return kindOf(content)
	}
	root, err := wellFormed(content)
	if err != nil {
		return brokenXML
	}
	if !success {
		return ""
	}
	switch {
	case root == "Error":
		return anError
	case root == "ListBucketResult" && !query.Has("list-type"):
		return listing
	default:
		return ""
	}
}

// noPolicy says what an answer is that should be a policy, or "".
func noPolicy(content []byte) string {
	if json.Valid(content) && content[0] == '{' {
		return ""
	}
	return kindOf(content)
}

// kindOf something that is no XML of S3.
func kindOf(content []byte) string {
	switch {
	case isHTML(content):
		return html
	case content[0] == '<':
		return "XML"
	case json.Valid(content):
		return jsonText
	default:
		return text
	}
}

func isHTML(content []byte) bool {
	begin := strings.ToLower(string(content[:min(len(content), 64)]))
	return strings.HasPrefix(begin, "<!doctype html") || strings.HasPrefix(begin, "<html")
}

// wellFormed returns the name of the root of an XML document.
func wellFormed(content []byte) (string, error) {
	root := ""
	for d := xml.NewDecoder(bytes.NewReader(content)); ; {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			if root == "" {
				return "", io.ErrUnexpectedEOF
			}
			return root, nil
		}
		if err != nil {
			return "", fmt.Errorf("cannot read XML: %w", err)
		}
		if e, ok := t.(xml.StartElement); ok && root == "" {
			root = e.Name.Local
		}
	}
}
