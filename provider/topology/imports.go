// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// imports is what the leader reports of an import; between two leaders the last report.
func (v *view) imports(leader string) *v1alpha1.ImportReport {
	for i := range v.pods {
		if leader != "" && memberOf(&v.pods[i]) == leader && running(&v.pods[i]) {
			if told := report(&v.pods[i]).Import; told != nil {
				return told
			}
			// A leader that has just begun has not looked yet.
			if v.was.Leader == leader {
				return nil
			}
		}
	}
	return v.was.Import
}

// maxImportFindings that are reported.
const maxImportFindings = 16

// boundImport bounds what a leader reports of an import.
func boundImport(r *v1alpha1.ImportReport) {
	if r == nil {
		return
	}
	for _, field := range []*string{&r.State, &r.CutOver, &r.Skipped} {
		*field = words.Bounded(words.OneLine(*field), maxReason)
	}
	r.Message = words.Bounded(words.OneLine(r.Message), maxMessage)
	r.Findings = r.Findings[:min(len(r.Findings), maxImportFindings)]
	for i := range r.Findings {
		r.Findings[i] = words.Bounded(words.OneLine(r.Findings[i]), maxMessage)
	}
	r.Copied, r.LagBytes, r.GapSeconds = min(max(r.Copied, 0), 100), max(r.LagBytes, 0), max(r.GapSeconds, 0)
}

// farBehind is how many bytes the source of an import may keep for it.
const farBehind = 1 << 30

// importBehind is 1 when changes of the source are not applied, or far too late, or when nothing is imported before something is corrected. There is none without an import.
func importBehind(t *v1alpha1.Topology) (behind float64, ok bool) {
	r := t.Status.AtProvider.Import
	if r == nil || r.State == v1alpha1.ImportCutOver || r.State == v1alpha1.ImportRestored {
		return 0, false
	}
	if r.State == v1alpha1.ImportFailing || r.State == v1alpha1.ImportIncompatible || r.LagBytes >= farBehind {
		behind = 1
	}
	return behind, true
}
