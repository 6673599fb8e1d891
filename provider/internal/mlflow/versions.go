// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

const (
	// page is how many versions one answer holds. A version has no more than some KiB, so that an answer stays far below what is
	// read of one.
	page = 100

	// maxPages that are read. No model has as many versions as are in them.
	maxPages = 1000
)

// Version of a model: rpc getModelVersion.
func (c *Client) Version(ctx context.Context, model, version string) (*Version, error) {
	const operation = "GetModelVersion"
	var answer struct {
		Version *Version `json:"model_version"`
	}
	q := url.Values{"name": {model}, "version": {version}}
	if err := c.get(ctx, operation, "model-versions/get", q, &answer); err != nil {
		return nil, err
	}
	if v := answer.Version; v == nil || v.Name != model || string(v.Version) != version {
		return nil, &Error{Operation: operation, Status: http.StatusOK, unreadable: true}
	}
	if answer.Version.Tags == nil {
		answer.Version.Tags = Tags{}
	}
	return answer.Version, nil
}

// CreateVersion with its tags and return the number that the registry gives it:
// rpc createModelVersion. Each call makes another version.
func (c *Client) CreateVersion(ctx context.Context, v Version) (string, error) {
	const operation = "CreateModelVersion"
	var answer struct {
		Version *Version `json:"model_version"`
	}
	err := c.send(ctx, operation, http.MethodPost, "model-versions/create", struct {
		Name        string `json:"name"`
		Source      string `json:"source"`
		RunID       string `json:"run_id,omitempty"`
		Description string `json:"description,omitempty"`
		Tags        Tags   `json:"tags,omitempty"`
	}{v.Name, v.Source, v.RunID, v.Description, v.Tags}, &answer)
	if err != nil {
		return "", err
	}
	if a := answer.Version; a == nil || a.Name != v.Name || a.Version == "" {
		return "", &Error{Operation: operation, Status: http.StatusOK, unreadable: true}
	}
	return string(answer.Version.Version), nil
}

// DescribeVersion for people: rpc updateModelVersion.
func (c *Client) DescribeVersion(ctx context.Context, model, version, description string) error {
	return c.send(ctx, "UpdateModelVersion", http.MethodPatch, "model-versions/update", struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Description string `json:"description"`
	}{model, version, description}, nil)
}

// DeleteVersion of a model: rpc deleteModelVersion.
func (c *Client) DeleteVersion(ctx context.Context, model, version string) error {
	return c.send(ctx, "DeleteModelVersion", http.MethodDelete, "model-versions/delete", struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}{model, version}, nil)
}

// SetVersionTag to a value, whether it had one or not: rpc setModelVersionTag.
func (c *Client) SetVersionTag(ctx context.Context, model, version, key, value string) error {
	return c.send(ctx, "SetModelVersionTag", http.MethodPost, "model-versions/set-tag", struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Key     string `json:"key"`
		Value   string `json:"value"`
	}{model, version, key, value}, nil)
}

// DeleteVersionTag from a version, if it is there: rpc deleteModelVersionTag.
func (c *Client) DeleteVersionTag(ctx context.Context, model, version, key string) error {
	return c.send(ctx, "DeleteModelVersionTag", http.MethodDelete, "model-versions/delete-tag", struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Key     string `json:"key"`
	}{model, version, key}, nil)
}

// ArtifactURI is where the files of a version can be downloaded: rpc getModelVersionDownloadUri. It does not change.
func (c *Client) ArtifactURI(ctx context.Context, model, version string) (string, error) {
	const operation = "GetModelVersionDownloadUri"
	var answer struct {
		URI string `json:"artifact_uri"`
	}
	q := url.Values{"name": {model}, "version": {version}}
	if err := c.get(ctx, operation, "model-versions/get-download-uri", q, &answer); err != nil {
		return "", err
	}
	if answer.URI == "" {
		return "", &Error{Operation: operation, Status: http.StatusOK, unreadable: true}
	}
	return answer.URI, nil
}

// VersionsTagged returns the versions of a model whose tag has a value: rpc searchModelVersions.
func (c *Client) VersionsTagged(ctx context.Context, model, key, value string) ([]Version, error) {
	name, err := equals("name", model)
	if err != nil {
		return nil, err
	}
	tagged, err := equals("tags.`"+key+"`", value)
	if err != nil {
		return nil, err
	}
	found, err := c.search(ctx, name+" AND "+tagged)
	if err != nil {
		return nil, err
	}

	// The filter is the registry's business, and its databases do not agree on what is equal. What is acted on must be exactly
	// what was requested.
	exact := found[:0]
	for _, v := range found {
		if v.Name == model && v.Tags[key] == value {
			exact = append(exact, v)
		}
	}
	return exact, nil
}

// Versions returns all versions of a model: rpc searchModelVersions.
func (c *Client) Versions(ctx context.Context, model string) ([]Version, error) {
	name, err := equals("name", model)
	if err != nil {
		return nil, err
	}
	return c.search(ctx, name)
}

// search all pages.
func (c *Client) search(ctx context.Context, filter string) ([]Version, error) {
	const operation = "SearchModelVersions"
	var all []Version
	q := url.Values{"filter": {filter}, "max_results": {strconv.Itoa(page)}}
	for range maxPages {
		var answer struct {
			Versions []Version `json:"model_versions"`
			Next     string    `json:"next_page_token"`
		}
		if err := c.get(ctx, operation, "model-versions/search", q, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer.Versions...)
		if answer.Next == "" {
			return all, nil
		}
		q.Set("page_token", answer.Next)
	}
	return nil, &outside.Failure{
		Reason:  v1alpha1.ReasonUnknownAnswer,
		Message: "the registry's list of versions does not end",
		Remedy:  "check that the URL in the config leads to the registry",
	}
}

// equals is a condition of a filter. The grammar of filters has no escape, so a value that would end its quotes is refused.
func equals(field, value string) (string, error) {
	if strings.ContainsAny(value, "'\"`\\") {
		return "", &outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: fmt.Sprintf("the registry cannot search for %q", value),
			Remedy:  "use a name without quotes and backslashes",
		}
	}
	return field + " = '" + value + "'", nil
}
