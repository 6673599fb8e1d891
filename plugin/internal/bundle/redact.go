// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"regexp"
	"strings"
)

// redacted stands for what is left out.
const redacted = "REDACTED"

// sensitive matches names of credentials, such as names of variables, keys and annotations.
var sensitive = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|pwd|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|encryption[-_.]?key|credential|authorization|cookie|dsn)`)

// reference ends names of fields that refer to an object instead of holding a value.
var reference = regexp.MustCompile(`(?i)(name|names|namespace|ref|refs|kind|path|file|policy|generation|reason|message|id|until|every|at)$`)

// patterns of credentials within a text, with what stands for them.
var patterns = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), redacted},
	// A password in a URL may hold everything but what ends it.
	{regexp.MustCompile(`([a-zA-Z][-a-zA-Z0-9+.]*://)[^/\s@"'<>]*@`), "${1}" + redacted + "@"},
	{regexp.MustCompile(`(?i)\b(bearer|basic|digest)\s+[-a-z0-9._~+/=:]{6,}`), "${1} " + redacted},
	{regexp.MustCompile(`\beyJ[-A-Za-z0-9_]{6,}\.[-A-Za-z0-9_]{4,}(\.[-A-Za-z0-9_]*)?`), redacted},
	{regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`), redacted},
	{regexp.MustCompile(`\b(gh[pousr]_|glpat-|xox[abprs]-|hf_|AGE-SECRET-KEY-)[-A-Za-z0-9_]{8,}`), redacted},
	// A hash of a password can be tried against words.
	{regexp.MustCompile(`SCRAM-SHA-256\$[^\s"']+`), redacted},
	// name=value, name: value and "name": "value", also between quotes.
	{regexp.MustCompile(`(?i)([-a-z0-9_.]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|credential)[-a-z0-9_.]*["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',;&]+)`), "${1}" + redacted},
	// password 'x' and identified by 'x', as SQL has them.
	{regexp.MustCompile(`(?i)\b(password|identified by)(\s+as)?\s+'[^']*'`), "${1} " + redacted},
}

// Text without what looks like a credential.
func Text(s string) string {
	for _, p := range patterns {
		s = p.find.ReplaceAllString(s, p.put)
	}

	return s
}

// lastApplied repeats the whole object, as it was written.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Object without what may be a credential. It keeps names, so that a reader sees what was set. Values of environment variables are left
// out in any case, because their names say nothing certain. It changes the object.
func Object(o map[string]any) map[string]any {
	if meta, ok := o["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			delete(annotations, lastApplied)
		}
	}
	if kind, _ := o["kind"].(string); kind == "Secret" {
		for _, field := range []string{"data", "stringData"} {
			if values, ok := o[field].(map[string]any); ok {
				for name := range values {
					values[name] = redacted
				}
			}
		}
	}
	delete(o, "binaryData")
	walk(o)

	return o
}

func walk(value any) any {
	switch v := value.(type) {
	case string:
		return Text(v)
	case map[string]any:
		for name, inner := range v {
			v[name] = field(name, inner)
		}

		return v
	case []any:
		for i, inner := range v {
			before, _ := element(v, i-1)
			if s, ok := inner.(string); ok && strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && sensitive.MatchString(before) && !strings.HasPrefix(s, "-") {
				v[i] = redacted

				continue
			}
			v[i] = walk(inner)
		}

		return v
	default:
		return value
	}
}

func element(list []any, i int) (string, bool) {
	if i < 0 {
		return "", false
	}
	s, ok := list[i].(string)

	return s, ok
}

// field of an object, by its name.
func field(name string, value any) any {
	if name == "env" || name == "headers" || name == "httpHeaders" {
		return literal(value)
	}
	if _, ok := value.(string); ok && sensitive.MatchString(name) && !reference.MatchString(name) {
		return redacted
	}

	return walk(value)
}

// literal values of a list of names and values, or of a map of them, are left out. References stay.
func literal(value any) any {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			entry, ok := one.(map[string]any)
			if !ok {
				continue
			}
			if _, ok := entry["value"]; ok {
				entry["value"] = redacted
			}
			walk(entry)
		}

		return v
	case map[string]any:
		for name, inner := range v {
			if _, ok := inner.(string); ok {
				v[name] = redacted
				continue
			}
			v[name] = walk(inner)
		}

		return v
	default:
		return redacted
	}
}
