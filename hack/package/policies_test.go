// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestPoliciesCoverEveryGroup compares the policies of platform.yaml with the kinds that Crossplane composes, and with those whose
// status is Capstan's.
func TestPoliciesCoverEveryGroup(t *testing.T) {
	own := map[string]bool{}
	for _, kind := range kinds(t) {
		_, group, _ := strings.Cut(kind, ".")
		own[group] = true
	}
	taken, statuses := groupsOf(t, "capstan-takeover"), groupsOf(t, "capstan-status")
	for group := range own {
		if !slices.Contains(statuses, group) {
			t.Errorf("capstan-status lacks the group %s", group)
		}
		if group != "capstan.dev" && !slices.Contains(taken, group) {
			t.Errorf("capstan-takeover lacks the group %s", group)
		}
	}
	var compose struct {
		Rules []struct {
			APIGroups []string `json:"apiGroups"`
			Resources []string `json:"resources"`
			Verbs     []string `json:"verbs"`
		} `json:"rules"`
	}
	decode(t, "ClusterRole", "capstan:compose", &compose)
	for _, rule := range compose.Rules {
		if !slices.Contains(rule.Verbs, "create") {
			continue
		}
		for _, group := range rule.APIGroups {
			if !slices.Contains(taken, group) {
				t.Errorf("capstan-takeover lacks the group %q, of which Crossplane composes %v", group, rule.Resources)
			}
		}
	}
	// Crossplane's chart grants these.
	for _, group := range []string{"", "apps"} {
		if !slices.Contains(taken, group) {
			t.Errorf("capstan-takeover lacks the group %q", group)
		}
	}
}

// groupsOf all resource rules of a policy.
func groupsOf(t *testing.T, policy string) []string {
	t.Helper()
	var p struct {
		Spec struct {
			MatchConstraints struct {
				ResourceRules []struct {
					APIGroups []string `json:"apiGroups"`
				} `json:"resourceRules"`
			} `json:"matchConstraints"`
		} `json:"spec"`
	}
	decode(t, "ValidatingAdmissionPolicy", policy, &p)
	var groups []string
	for _, r := range p.Spec.MatchConstraints.ResourceRules {
		groups = append(groups, r.APIGroups...)
	}
	return groups
}

// decode an object of platform.yaml.
func decode(t *testing.T, kind, name string, into any) {
	t.Helper()
	for doc := range bytes.SplitSeq(read(t, "package/platform.yaml"), []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == kind && o.Metadata.Name == name {
			if err := yaml.Unmarshal(doc, into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("platform.yaml has no %s %s", kind, name)
}

// TestNetworkPolicies compares the pods that policies select with the names under which packages are installed, and with the labels of
// their runtime configurations.
func TestNetworkPolicies(t *testing.T) {
	for _, a := range artifacts() {
		if a.Kind != "function" && a.Kind != "provider" {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			var policy struct {
				Spec struct {
					PodSelector struct {
						MatchLabels map[string]string `json:"matchLabels"`
					} `json:"podSelector"`
				} `json:"spec"`
			}
			decode(t, "NetworkPolicy", a.Name, &policy)
			if diff := cmp.Diff(map[string]string{"pkg.crossplane.io/" + a.Kind: a.installed()}, policy.Spec.PodSelector.MatchLabels); diff != "" {
				t.Errorf("labels that Crossplane sets: -want, +got:\n%s", diff)
			}
			decode(t, "NetworkPolicy", "capstan-metrics", &policy)
			var config struct {
				Spec struct {
					DeploymentTemplate struct {
						Spec struct {
							Template struct {
								Metadata struct {
									Labels map[string]string `json:"labels"`
								} `json:"metadata"`
							} `json:"template"`
						} `json:"spec"`
					} `json:"deploymentTemplate"`
				} `json:"spec"`
			}
			decode(t, "DeploymentRuntimeConfig", a.Name, &config)
			const key = "app.kubernetes.io/part-of"
			got := config.Spec.DeploymentTemplate.Spec.Template.Metadata.Labels[key]
			if diff := cmp.Diff(policy.Spec.PodSelector.MatchLabels[key], got); diff != "" {
				t.Errorf("capstan-metrics does not select these pods: -want, +got:\n%s", diff)
			}
		})
	}
}
