// SPDX-License-Identifier: Apache-2.0

package decision

import (
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// dumpsRestored is the record of an import that dumps ended: no request did.
const dumpsRestored = "dump"

// ImportEnds reports that members have cut over, or have restored every dump. Consumers get their logins once the record of it is kept: it
// outlives the Database, as its data does.
func (s *Decision) ImportEnds() bool { return importEnds(s.Cluster) != "" }

// importEnds is what the record of the end has; "" while it has not come.
func importEnds(s *facts.Cluster) string {
	r := s.ImportReport()
	switch {
	case !s.Imports() || s.Memory.Imported != nil || !s.Leads():
		return ""
	case s.Dumps() != nil && r.State == observev1alpha1.ImportRestored:
		return dumpsRestored
	case s.Dumps() == nil && r.State == observev1alpha1.ImportCutOver:
		return r.CutOver
	default:
		return ""
	}
}
