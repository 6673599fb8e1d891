// SPDX-License-Identifier: Apache-2.0

// Package policy compares policies of buckets by what they mean.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Normalise a policy: two policies that mean the same become the same text.
//
// The order of keys, white space, one string in place of a list of one, the order of lists and repetitions in them mean nothing;
// neither does the case of actions. An account is the same as its root user, and everybody the same as every AWS user. The order
// of statements is kept: S3 does not mind it, people do.
func Normalise(text string) (string, error) {
	document, err := decodePolicy(text)
	if err != nil {
		return "", err
	}

	// This is the version of a policy that says none.
	if v, ok := document["Version"]; !ok || v == "" {
		document["Version"] = "2008-10-17"
	}
	if id, ok := document["Id"]; ok && id == "" {
		delete(document, "Id")
	}
	statements := asList(document["Statement"])
	document["Statement"] = statements
	for i, s := range statements {
		if m, ok := s.(map[string]any); ok {
			statements[i] = statement(m)
		}
	}
	return encodePolicy(document)
}

// Spelled is a policy as it is sent: not all servers know the spelling of a single statement without a list around it.
func Spelled(text string) (string, error) {
	document, err := decodePolicy(text)
	if err != nil {
		return "", err
	}
	document["Statement"] = asList(document["Statement"])
	return encodePolicy(document)
}

func decodePolicy(text string) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var document map[string]any
	if err := d.Decode(&document); err != nil {
		return nil, plainJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the end of the JSON object")
	}
	if document == nil {
		return nil, errors.New("it is null and not a JSON object")
	}
	return document, nil
}

func encodePolicy(document map[string]any) (string, error) {
	b := &strings.Builder{}
	e := json.NewEncoder(b)
	// An ampersand in a policy is an ampersand.
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		return "", fmt.Errorf("cannot encode it: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// plainJSON is what is wrong with JSON, in a few words that are always the same.
func plainJSON(err error) error {
	if e := (*json.SyntaxError)(nil); errors.As(err, &e) {
		return fmt.Errorf("it is not JSON from byte %d on", e.Offset)
	}
	if e := (*json.UnmarshalTypeError)(nil); errors.As(err, &e) {
		return errors.New("it is not a JSON object")
	}
	return errors.New("it is not complete JSON")
}

func statement(s map[string]any) map[string]any {
	n := make(map[string]any, len(s))
	for k, v := range s {
		switch k {
		case "Sid":
			if v == "" {
				continue
			}
		case "Action", "NotAction":
			v = set(v, strings.ToLower)
		case "Resource", "NotResource":
			v = set(v, same)
		case "Principal", "NotPrincipal":
			v = principal(v)
		case "Condition":
			v = condition(v)
		}
		n[k] = v
	}
	return n
}

// principal in the form of a map of sets.
func principal(v any) any {
	if s, ok := v.(string); ok {
		v = map[string]any{"AWS": s}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	n := make(map[string]any, len(m))
	for k, v := range m {
		if k == "AWS" {
			v = set(v, account)
		} else {
			v = set(v, same)
		}
		n[k] = v
	}
	return n
}

var rootUser = regexp.MustCompile(`^arn:aws[a-z-]*:iam::([0-9]{12}):root$`)

// account of a root user.
func account(s string) string {
	if m := rootUser.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return s
}

// condition with its values as sets of strings: true and "true" are the same.
func condition(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	n := make(map[string]any, len(m))
	for operator, keys := range m {
		k, ok := keys.(map[string]any)
		if !ok {
			n[operator] = keys
			continue
		}
		values := make(map[string]any, len(k))
		for name, value := range k {
			values[name] = set(value, same)
		}
		n[operator] = values
	}
	return n
}

// set of strings, of one or of a list. What is neither stays as it is.
func set(v any, form func(string) string) any {
	var all []string
	for _, each := range asList(v) {
		switch e := each.(type) {
		case string:
			all = append(all, form(e))
		case bool, json.Number:
			all = append(all, form(fmt.Sprint(e)))
		default:
			return v
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func asList(v any) []any {
	switch l := v.(type) {
	case nil:
		return []any{}
	case []any:
		return l
	default:
		return []any{v}
	}
}

func same(s string) string { return s }
