// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// imported reports how the import from another server or from dumps is.
func imported(s *decision.Pass) xpv2.Condition {
	r, c := s.ImportReport(), s.Spec.CutOver
	switch {
	case !s.Imports() || len(s.Problems) > 0 && len(s.Sets) == 0:
		return xpv2.Condition{}
	case s.Memory.Imported != nil:
		return importEnded(s, r)
	case !s.Leads(), r.State == "":
		return unknown(v1alpha1.ReasonImportUnknown, "no leader has reported how the import is: see the condition Available")
	}
	if s.Dumps() != nil {
		return dumped(r)
	}
	switch r.State {
	case observev1alpha1.ImportIncompatible:
		return no(v1alpha1.ReasonImportIncompatible, fmt.Sprintf("spec.from.server: %s: %s", r.Message, strings.Join(r.Findings, "; ")))
	case observev1alpha1.ImportCopying:
		return no(v1alpha1.ReasonImportCopying, fmt.Sprintf("%s: %d %% of the tables are complete; consumers cannot log in before the cut-over", r.Message, r.Copied))
	case observev1alpha1.ImportFailing:
		return no(v1alpha1.ReasonImportFailing, r.Message+"; "+s.Traits.Imports.Failing)
	case observev1alpha1.ImportCuttingOver:
		return no(v1alpha1.ReasonCuttingOver, fmt.Sprintf("spec.cutOver.id: %q: %s", r.CutOver, r.Message))
	case observev1alpha1.ImportCutOver:
		return no(v1alpha1.ReasonCuttingOver, "the cut-over is being recorded, and consumers can log in next")
	case observev1alpha1.ImportFollowing:
		if c != nil && c.ID == r.Skipped {
			return no(v1alpha1.ReasonCutOverSkipped, fmt.Sprintf("spec.cutOver.id: %q: the Database was created with this id, which ends no import: to cut over, set another id", c.ID))
		}
		return no(v1alpha1.ReasonImportFollowing, fmt.Sprintf("%s; to end the import, stop the clients of the source and set spec.cutOver: "+
			"consumers can write about %d seconds later", r.Message, r.GapSeconds))
	default:
		return no(v1alpha1.ReasonImportChecking, "the source is being checked: "+r.Message)
	}
}

// importEnded reports an import whose end is recorded.
func importEnded(s *decision.Pass, r observev1alpha1.ImportReport) xpv2.Condition {
	if s.Dumps() != nil {
		return yes(v1alpha1.ReasonDumpRestored, "every dump is restored, and the Database takes writes: dumps are not read again")
	}
	message := fmt.Sprintf("the Database takes writes since cut-over %q, and is independent of the source", s.Memory.Imported.ID)
	if r.State == observev1alpha1.ImportCutOver && r.Message != "" {
		message += ": " + r.Message
	}
	return yes(v1alpha1.ReasonCutOver, message)
}

// dumped reports how the restore of dumps is, before its end is recorded.
func dumped(r observev1alpha1.ImportReport) xpv2.Condition {
	switch r.State {
	case observev1alpha1.ImportIncompatible:
		return no(v1alpha1.ReasonImportIncompatible, fmt.Sprintf("spec.from.dump: %s: %s", r.Message, strings.Join(r.Findings, "; ")))
	case observev1alpha1.ImportCopying:
		return no(v1alpha1.ReasonImportCopying, fmt.Sprintf("%s: %d %% of the bytes of all dumps are read; consumers cannot log in before every dump is restored", r.Message, r.Copied))
	case observev1alpha1.ImportFailing:
		return no(v1alpha1.ReasonImportFailing, "spec.from.dump: "+r.Message)
	case observev1alpha1.ImportRestored:
		return no(v1alpha1.ReasonImportCopying, "every dump is restored, which is being recorded, and consumers can log in next")
	default:
		return no(v1alpha1.ReasonImportChecking, "the dumps are being checked: "+r.Message)
	}
}

// importStatus of a Database that is filled from another server or from dumps, or was.
func importStatus(s *facts.Cluster) *v1alpha1.ImportStatus {
	if !s.Imports() {
		return nil
	}
	r := s.ImportReport()
	st := &v1alpha1.ImportStatus{
		Importing: s.Importing(), Findings: r.Findings, CopiedPercent: r.Copied, LagBytes: r.LagBytes, GapSeconds: r.GapSeconds,
	}
	if m := s.Memory.Imported; m != nil {
		st.CutOverAt = &metav1.Time{Time: m.When}
		if s.Dumps() == nil {
			st.CutOver = m.ID
		}
	}
	return st
}
