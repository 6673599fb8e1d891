// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
)

// evidenceKey is what the schema asks of keys of spec.forProvider.evidence, too. With the longest alias it makes the longest tag
// that the registry takes.
var evidenceKey = regexp.MustCompile(`^[a-z][a-z0-9.-]{0,36}$`)

// Evidence of an alias, as tags of a version.
func Evidence(alias string, evidence map[string]string) mlflow.Tags {
	tags := make(mlflow.Tags, len(evidence))
	for k, v := range evidence {
		tags[evidenceOf(alias)+k] = v
	}
	return tags
}

// EvidenceIn finds which of the tags of a version are evidence of an alias:
// the keys of the tags, and the keys of the evidence, sorted. What only begins like evidence is another owner's.
func EvidenceIn(alias string, tags mlflow.Tags) (tagKeys, keys []string) {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if key, ok := strings.CutPrefix(k, evidenceOf(alias)); ok && evidenceKey.MatchString(key) {
			tagKeys, keys = append(tagKeys, k), append(keys, key)
		}
	}
	return tagKeys, keys
}

func evidenceOf(alias string) string { return v1alpha1.TagEvidencePrefix + alias + "." }
