// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kindOf is a crd of a kind, as far as accessors look at it.
func kindOf(kind string, categories ...string) crd {
	c := crd{top: apis}
	c.Spec.Group = "storage.capstan.dev"
	c.Spec.Names = names{Kind: kind, Categories: categories}
	c.Spec.Versions = []version{{Name: "v1alpha1"}}
	return c
}

func TestAccessors(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "apis", "storage", "v1alpha1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"types.go": "package v1alpha1\ntype BucketSpec struct {\n ProviderConfigReference, WriteConnectionSecretToReference *string\n}\n" +
			"type PlainSpec struct { ForProvider string }\n",
		"zz_generated.other.go": "this is not even Go",
		"types_test.go":         "nor is this",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	files, err := accessors(root, []crd{kindOf("Bucket", "managed"), kindOf("Plain", "managed"), kindOf("Config", "provider")})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Fatalf("want one file for the package, got %d", len(files))
	}
	got := string(files["apis/storage/v1alpha1/zz_generated.managed.go"])
	for want, reason := range map[string]string{
		"return mg.Spec.ProviderConfigReference\n":                                                   "A kind whose spec names a config tells it.",
		"return mg.Spec.WriteConnectionSecretToReference\n":                                          "So does one that names a Secret.",
		"func (mg *Plain) GetProviderConfigReference() *xpv2.ProviderConfigReference { return nil }": "One that names none has none.",
		"_ resource.ManagedList   = &PlainList{}":                                                    "Every kind has a list.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s want %q in:\n%s", reason, want, got)
		}
	}
	if strings.Contains(got, "Config{}") {
		t.Error("What configures the provider is no managed resource")
	}

	if _, err := accessors(root, []crd{kindOf("Unknown", "managed")}); err == nil || !strings.Contains(err.Error(), "UnknownSpec") {
		t.Errorf("A kind without a spec should be told, got %v", err)
	}
}

func TestConnected(t *testing.T) {
	cases := map[string]struct {
		reason string
		field  string
		want   bool
	}{
		"Managed": {reason: "What names a config talks to the outside.", field: "providerConfigRef", want: true},
		"Config":  {reason: "What configures a connection tells how it is.", field: "retry", want: true},
		"Neither": {reason: "All others have nothing outside.", field: "forProvider"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := kindOf("Bucket", "managed")
			c.Spec.Versions[0].Schema.OpenAPIV3Schema = map[string]any{
				"properties": map[string]any{"spec": map[string]any{"properties": map[string]any{tc.field: map[string]any{}}}},
			}
			if got := c.connected(); got != tc.want {
				t.Errorf("\n%s\nconnected(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestReadConditions(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"conditions.go":       "package x\n\n// Conditions of a Bucket, beside others.\nconst (\n\t// TypeFull tells that it is full.\n\tTypeFull T = \"Full\"\n)\n\n// Reasons of the condition Full.\nconst (\n\t// ReasonBig: it is big.\n\tReasonBig R = \"Big\"\n)\n",
		"conditions_other.go": "package x\n\n// Conditions of a connection: of all.\nconst (\n\t// TypeUp tells that it is up.\n\tTypeUp T = \"Up\"\n)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[string]string{"Bucket": "Full", connections: "Up"} {
		got, err := readConditions(dir, kind)
		if err != nil || len(got) != 1 || got[0].value != want {
			t.Errorf("readConditions(%q): want %q, got %v, %v", kind, want, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "conditions_shared.go"), []byte("package x\n\n// Conditions of an Algorithm and a Database, beside others.\nconst (\n\tTypeDone T = \"Done\"\n)\n\n"+
		"// Reasons of the condition Done.\nconst (\n\tA R = \"Both\"\n)\n\n// Reasons of the condition Done of a Database. More.\nconst (\n\tB R = \"One\"\n)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{"Algorithm": {"Both"}, "Database": {"Both", "One"}} {
		var reasons []string
		got, err := readConditions(dir, kind)
		for _, c := range got {
			for _, r := range c.reasons {
				reasons = append(reasons, r.value)
			}
		}
		if err != nil || !slices.Equal(reasons, want) {
			t.Errorf("readConditions(%q) of a shared condition: want reasons %v, got %v, %v", kind, want, reasons, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "conditions_bad.go"), []byte("package x\n\n// Reasons of the condition Gone.\nconst (\n\tA B = \"C\"\n)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readConditions(dir, "Bucket"); err == nil || !strings.Contains(err.Error(), `"Gone"`) {
		t.Errorf("Reasons of nothing should be told, got %v", err)
	}
}
