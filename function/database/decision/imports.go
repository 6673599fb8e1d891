// SPDX-License-Identifier: Apache-2.0

package decision

import (
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// CutOverEnds reports that members have cut over. Consumers get their logins once the record of it is kept: it outlives the Database, as its
// data does.
func (s *Decision) CutOverEnds() bool { return cutOverEnds(s.Cluster) }

func cutOverEnds(s *facts.Cluster) bool {
	return s.Imports() && s.Memory.Imported == nil && s.Leads() && s.ImportReport().State == observev1alpha1.ImportCutOver && s.ImportReport().CutOver != ""
}
