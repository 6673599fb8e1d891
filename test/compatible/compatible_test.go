// SPDX-License-Identifier: Apache-2.0

// Package compatible proves that hack/compatible detects what breaks a released API.
package compatible

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	crd        = "package/provider/crds/example.org_things.yaml"
	definition = "apis/thing/definition.yaml"
)

// schema of a kind with one field.
const schema = `
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size:
                  type: integer
`

const crdHead = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.org
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  versions:
    - name: v1alpha1
      served: true
      storage: true`

const definitionHead = `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: xthings.example.org
spec:
  group: example.org
  scope: Namespaced
  names: {kind: XThing, plural: xthings}
  versions:
    - name: v1alpha1
      served: true
      referenceable: true`

// A second version of each.
const (
	crdBeside = `
    - name: v1beta1
      served: true
      storage: false`
	definitionBeside = `
    - name: v1beta1
      served: true
      referenceable: false`
)

func TestCompatible(t *testing.T) {
	change := func(file, from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || !strings.Contains(string(data), from) {
				t.Fatalf("cannot change %q of %s: %v", from, file, err)
			}
			put(t, dir, file, strings.ReplaceAll(string(data), from, to))
		}
	}
	tag := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); git(t, dir, "tag", name) }
	}
	beside := func(file, version string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, file, strings.TrimRight(string(data), "\n")+version)
		}
	}
	commit := func(t *testing.T, dir string) {
		t.Helper()
		git(t, dir, "add", "--all")
		git(t, dir, "commit", "--quiet", "--allow-empty", "--message=change")
	}
	optional := "size:\n                  type: integer\n                colour:\n                  type: string"
	cases := map[string]struct {
		reason string
		steps  []func(*testing.T, string)
		fails  bool
		want   string
	}{
		"NoTag":  {reason: "before the first release nothing is promised", want: "nothing to compare with"},
		"Other":  {reason: "only tags of releases count", steps: steps(tag("snapshot"), tag("v0.1.0-rc.1"), change(crd, "type: integer", "type: string")), want: "nothing to compare with"},
		"AtOnce": {reason: "a first release has none before it", steps: steps(tag("v0.1.0")), want: "nothing to compare with"},
		"Compatible": {
			reason: "a new optional field breaks nobody",
			steps:  steps(tag("v0.1.0"), change(crd, "size:\n                  type: integer", optional)),
			want:   "comparing with v0.1.0",
		},
		"BrokenKind": {
			reason: "a field with another type breaks what people wrote",
			steps:  steps(tag("v0.1.0"), change(crd, "type: integer", "type: string")),
			fails:  true, want: crd + " breaks what v0.1.0 promised",
		},
		"BrokenDefinition": {
			reason: "so it does in a composite kind",
			steps:  steps(tag("v0.1.0"), change(definition, "size:", "count:")),
			fails:  true, want: definition + " breaks what v0.1.0 promised",
		},
		"Gone": {
			reason: "a kind that was released stays",
			steps:  steps(tag("v0.1.0"), func(t *testing.T, dir string) { t.Helper(); remove(t, dir, definition) }),
			fails:  true, want: definition + " of v0.1.0 has no successor",
		},
		"Beside": {
			reason: "a version that is served beside another one with the same schema breaks nobody",
			steps:  steps(tag("v0.1.0"), beside(crd, crdBeside+schema), beside(definition, definitionBeside+schema)),
			want:   "comparing with v0.1.0",
		},
		"BesideAnother": {
			reason: "with another schema, objects would lose fields between the two",
			steps:  steps(beside(crd, crdBeside+strings.ReplaceAll(schema, "size:", "count:"))),
			fails:  true, want: "v1alpha1 and v1beta1 differ at .schema.openAPIV3Schema.properties.spec.properties.count",
		},
		"BesideAnotherDefinition": {
			reason: "so they would in a composite kind",
			steps:  steps(beside(definition, definitionBeside+strings.ReplaceAll(schema, "integer", "number"))),
			fails:  true, want: "v1alpha1 and v1beta1 differ at .schema.openAPIV3Schema.properties.spec.properties.size.type",
		},
		"NextRelease": {
			reason: "a release compares with the one before it",
			steps:  steps(tag("v0.1.0"), change(crd, "type: integer", "type: string"), commit, tag("v0.2.0")),
			fails:  true, want: crd + " breaks what v0.1.0 promised",
		},
		"AfterwardsAgain": {
			reason: "what the last release broke is no longer promised",
			steps: steps(tag("v0.1.0"), change(crd, "type: integer", "type: string"), commit, tag("v0.2.0"),
				change(definition, "size:\n                  type: integer", optional)),
			want: "comparing with v0.2.0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := repository(t)
			for _, step := range tc.steps {
				step(t, dir)
			}
			got, err := compatible(t, dir)
			if (err != nil) != tc.fails || !strings.Contains(got, tc.want) {
				t.Errorf("%s: want failure %t and %q, got %v and\n%s", tc.reason, tc.fails, tc.want, err, got)
			}
		})
	}

	t.Run("Shallow", func(t *testing.T) {
		dir := repository(t)
		tag("v0.1.0")(t, dir)
		commit(t, dir)
		clone := t.TempDir()
		git(t, dir, "clone", "--quiet", "--depth=1", "--no-tags", "file://"+dir, clone)
		if got, err := compatible(t, clone); err != nil || !strings.Contains(got, "git fetch --unshallow --tags") {
			t.Errorf("a clone without history says how to get it: got %v and\n%s", err, got)
		}
	})
}

func steps(s ...func(*testing.T, string)) []func(*testing.T, string) { return s }

// repository with the script, its tools, and one kind of each sort, in one commit.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{
		"go.mod", "go.sum", "hack/compatible", "hack/conversion/main.go", "hack/go.mod", "hack/go.sum", "hack/tools/crddiff/go.mod", "hack/tools/crddiff/go.sum",
	} {
		data, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, file, string(data))
	}
	put(t, dir, crd, crdHead+schema)
	put(t, dir, definition, definitionHead+schema)
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--message=one")
	return dir
}

func compatible(t *testing.T, dir string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "hack", "compatible")).CombinedOutput()
	return string(out), err
}

func put(t *testing.T, dir, file, content string) {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil { // the script has to be executable
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, file string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, file)); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.org"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}
