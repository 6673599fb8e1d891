// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

type policy struct {
	OmitStages []string
	Rules      []struct {
		Level      string
		Users      []string
		UserGroups []string
		Verbs      []string
		Resources  []struct {
			Group     string
			Resources []string
		}
		NonResourceURLs []string
		OmitStages      []string
	}
}

func TestAuditPolicy(t *testing.T) {
	data, err := files.ReadFile("audit-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var p policy
	if err := yaml.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	first, last := p.Rules[0], p.Rules[len(p.Rules)-1]
	if first.Level != "Metadata" || len(first.Verbs) > 0 || !slices.Contains(first.Resources[0].Resources, "secrets") {
		t.Error("the first rule, which wins, does not keep every request for Secrets")
	}
	if last.Level != "Metadata" || len(last.Verbs)+len(last.Users)+len(last.Resources) > 0 {
		t.Error("the last rule does not keep what no other rule has dropped")
	}
	for i, rule := range p.Rules[1 : len(p.Rules)-1] {
		reads := len(rule.Verbs) > 0
		for _, verb := range rule.Verbs {
			reads = reads && slices.Contains([]string{"get", "list", "watch"}, verb)
		}
		events := len(rule.Resources) > 0 && len(rule.Users)+len(rule.UserGroups) > 0
		for _, r := range rule.Resources {
			events = events && slices.Equal(r.Resources, []string{"events"})
		}
		if !reads && !events && len(rule.NonResourceURLs) == 0 {
			t.Errorf("rule %d drops writes: %+v", i+1, rule)
		}
	}
}

func TestComponents(t *testing.T) {
	all := components(build.Programs{})
	names := make([]string, 0, len(all))
	for _, c := range all {
		names = append(names, c.Name)
		if !slices.Contains([]string{"scheduler", "controller-manager", "registry", "csi-resizer"}, c.Name) && c.Ready == "" {
			t.Errorf("what comes after %s does not wait for it", c.Name)
		}
	}
	want := []string{"etcd", "registry", "apiserver", "controller-manager", "scheduler", "xfsdriver", "csi-resizer"}
	if !slices.Equal(want, names) {
		t.Errorf("each component comes after what it needs: want %v, got %v", want, names)
	}
}
