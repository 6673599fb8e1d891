// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestBoundImport: a program that may annotate a pod could write anything.
func TestBoundImport(t *testing.T) {
	r := &v1alpha1.ImportReport{State: strings.Repeat("s", 5000), Message: "a\nb", Copied: 400, LagBytes: -1, GapSeconds: -1}
	for range 100 {
		r.Findings = append(r.Findings, strings.Repeat("f", 100000))
	}
	boundImport(r)
	if len(r.State) > maxReason+4 || strings.Contains(r.Message, "\n") || r.Copied != 100 || r.LagBytes != 0 || r.GapSeconds != 0 {
		t.Errorf("got %+v", r)
	}
	if len(r.Findings) != maxImportFindings || len(r.Findings[0]) > maxMessage+4 {
		t.Errorf("%d findings, the first of %d bytes", len(r.Findings), len(r.Findings[0]))
	}
	boundImport(nil)
}

// TestImportBehind is what the alert is about.
func TestImportBehind(t *testing.T) {
	for _, c := range []struct {
		reason string
		report *v1alpha1.ImportReport
		behind float64
		ok     bool
	}{
		{"A Database that is not imported has no series.", nil, 0, false},
		{"Nor one that was cut over.", &v1alpha1.ImportReport{State: v1alpha1.ImportCutOver}, 0, false},
		{"Nor one whose dumps are restored.", &v1alpha1.ImportReport{State: v1alpha1.ImportRestored, Copied: 100}, 0, false},
		{"One that follows is not behind.", &v1alpha1.ImportReport{State: v1alpha1.ImportFollowing, LagBytes: 64 << 20}, 0, true},
		{"One that applies nothing is.", &v1alpha1.ImportReport{State: v1alpha1.ImportFailing}, 1, true},
		{"So is one that nothing was put into, because something has to be corrected.", &v1alpha1.ImportReport{State: v1alpha1.ImportIncompatible}, 1, true},
		{"So is one that is far too late.", &v1alpha1.ImportReport{State: v1alpha1.ImportFollowing, LagBytes: 4 << 30}, 1, true},
	} {
		topology := &v1alpha1.Topology{}
		topology.Status.AtProvider.Import = c.report
		if behind, ok := importBehind(topology); behind != c.behind || ok != c.ok {
			t.Errorf("%s got %g, %t", c.reason, behind, ok)
		}
	}
}
