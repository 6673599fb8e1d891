// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"context"
	"net/http"
	"net/url"
)

// Model of a name: rpc getRegisteredModel.
func (c *Client) Model(ctx context.Context, name string) (*Model, error) {
	const operation = "GetRegisteredModel"
	var answer struct {
		Model *Model `json:"registered_model"`
	}
	if err := c.get(ctx, operation, "registered-models/get", url.Values{"name": {name}}, &answer); err != nil {
		return nil, err
	}

	// A database that ignores case, or a proxy that remembers too much, could return another model.
	if answer.Model == nil || answer.Model.Name != name {
		return nil, &Error{Operation: operation, Status: http.StatusOK, unreadable: true}
	}
	if answer.Model.Tags == nil {
		answer.Model.Tags = Tags{}
	}
	return answer.Model, nil
}

// CreateModel with its tags: rpc createRegisteredModel. When there is one of this name the error is a conflict.
func (c *Client) CreateModel(ctx context.Context, m Model) error {
	return c.send(ctx, "CreateRegisteredModel", http.MethodPost, "registered-models/create", struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Tags        Tags   `json:"tags,omitempty"`
	}{m.Name, m.Description, m.Tags}, nil)
}

// DescribeModel for people: rpc updateRegisteredModel.
func (c *Client) DescribeModel(ctx context.Context, name, description string) error {
	return c.send(ctx, "UpdateRegisteredModel", http.MethodPatch, "registered-models/update", struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}{name, description}, nil)
}

// DeleteModel with all of its versions: rpc deleteRegisteredModel.
func (c *Client) DeleteModel(ctx context.Context, name string) error {
	return c.send(ctx, "DeleteRegisteredModel", http.MethodDelete, "registered-models/delete", struct {
		Name string `json:"name"`
	}{name}, nil)
}

// SetModelTag to a value, whether it had one or not: rpc setRegisteredModelTag.
func (c *Client) SetModelTag(ctx context.Context, name, key, value string) error {
	return c.send(ctx, "SetRegisteredModelTag", http.MethodPost, "registered-models/set-tag", struct {
		Name  string `json:"name"`
		Key   string `json:"key"`
		Value string `json:"value"`
	}{name, key, value}, nil)
}

// DeleteModelTag from a model, if it is there: rpc deleteRegisteredModelTag.
func (c *Client) DeleteModelTag(ctx context.Context, name, key string) error {
	return c.send(ctx, "DeleteRegisteredModelTag", http.MethodDelete, "registered-models/delete-tag", struct {
		Name string `json:"name"`
		Key  string `json:"key"`
	}{name, key}, nil)
}

// SetAlias to a version, wherever it pointed: rpc setRegisteredModelAlias. When the version does not exist the error IsNotFound.
func (c *Client) SetAlias(ctx context.Context, name, alias, version string) error {
	return c.send(ctx, "SetRegisteredModelAlias", http.MethodPost, "registered-models/alias", struct {
		Name    string `json:"name"`
		Alias   string `json:"alias"`
		Version string `json:"version"`
	}{name, alias, version}, nil)
}

// DeleteAlias of a model, if it is there: rpc deleteRegisteredModelAlias.
func (c *Client) DeleteAlias(ctx context.Context, name, alias string) error {
	return c.send(ctx, "DeleteRegisteredModelAlias", http.MethodDelete, "registered-models/alias", struct {
		Name  string `json:"name"`
		Alias string `json:"alias"`
	}{name, alias}, nil)
}
