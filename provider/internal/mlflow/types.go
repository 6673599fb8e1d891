// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// A Model is a registered model: message RegisteredModel of mlflow/protos/model_registry.proto, as far as we use it.
type Model struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Tags        Tags    `json:"tags"`
	Aliases     []Alias `json:"aliases"`
}

// Alias returns the version that an alias of the model points to, or "".
func (m *Model) Alias(name string) string {
	for _, a := range m.Aliases {
		if a.Alias == name {
			return string(a.Version)
		}
	}
	return ""
}

// AliasesOf a version, sorted.
func (m *Model) AliasesOf(version string) []string {
	var names []string
	for _, a := range m.Aliases {
		if string(a.Version) == version {
			names = append(names, a.Alias)
		}
	}
	slices.Sort(names)
	return names
}

// An Alias of a model points to a version: message RegisteredModelAlias of mlflow/protos/model_registry.proto.
type Alias struct {
	Alias   string `json:"alias"`
	Version Number `json:"version"`
}

// States of a version: enum ModelVersionStatus of mlflow/protos/model_registry.proto.
const (
	StatusPending = "PENDING_REGISTRATION"
	StatusFailed  = "FAILED_REGISTRATION"
	StatusReady   = "READY"
)

// A Version of a model: message ModelVersion of mlflow/protos/model_registry.proto, as far as we use it.
type Version struct {
	Name        string `json:"name"`
	Version     Number `json:"version"`
	Description string `json:"description"`
	Source      string `json:"source"`
	RunID       string `json:"run_id"`
	Status      string `json:"status"`
	Tags        Tags   `json:"tags"`

	// Aliases are set when one version is read, and not in what a search finds.
	Aliases []string `json:"aliases"`
}

// A Number of a version. It is a string in the protocol; servers whose registry keeps an int64 write it as a string or as a
// number, as JSON of protobuf allows.
type Number string

var decimal = regexp.MustCompile(`^[0-9]{1,19}$`)

// UnmarshalJSON reads a string or a number.
func (n *Number) UnmarshalJSON(b []byte) error {
	s := string(b)
	if bytes.HasPrefix(b, []byte(`"`)) {
		if err := json.Unmarshal(b, &s); err != nil {
			return fmt.Errorf("cannot read a version: %w", err)
		}
	}
	if !decimal.MatchString(s) {
		return fmt.Errorf("cannot read a version: %q is not a number", s)
	}
	*n = Number(s)
	return nil
}

// Tags are messages RegisteredModelTag and ModelVersionTag of mlflow/protos/model_registry.proto: lists of keys and values, in
// which each key is there once.
type Tags map[string]string

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// MarshalJSON writes a list, sorted by key.
func (t Tags) MarshalJSON() ([]byte, error) {
	list := make([]tag, 0, len(t))
	for _, k := range slices.Sorted(maps.Keys(t)) {
		list = append(list, tag{Key: k, Value: t[k]})
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads a list.
func (t *Tags) UnmarshalJSON(b []byte) error {
	var list []tag
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("cannot read tags: %w", err)
	}
	*t = make(Tags, len(list))
	for _, x := range list {
		(*t)[x.Key] = x.Value
	}
	return nil
}
