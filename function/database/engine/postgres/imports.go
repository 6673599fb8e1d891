// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// imports of a running server, by logical replication.
var imports = engine.Imports{
	First:  "16", // earlier ones apply changes as the superuser
	Logins: []string{pgmember.RoleImport, pgmember.RoleRestore},
	// In the words of libpq.
	TLS: map[v1alpha1.ImportTLS]string{
		v1alpha1.ImportVerifyFull: "verify-full", v1alpha1.ImportVerifyCA: "verify-ca", v1alpha1.ImportRequire: "require", v1alpha1.ImportDisable: "disable",
	},
	Skips:   []v1alpha1.ImportSkip{v1alpha1.ImportSkipLargeObjects, v1alpha1.ImportSkipUnloggedTables},
	Failing: "the disk of the source fills meanwhile",
	Renames: true,
}

// dumpsFile is what the program in members has to know of dumps.
func dumpsFile(d *engine.Dumps) *pgmember.Dumps {
	if d == nil {
		return nil
	}
	out := &pgmember.Dumps{Ended: d.Ended}
	for _, f := range d.Databases {
		out.Databases = append(out.Databases, pgmember.Dump{Name: f.Name, Path: f.Path, Format: string(f.Format)})
	}
	return out
}
