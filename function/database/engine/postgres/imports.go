// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"slices"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// sslModes of libpq.
var sslModes = map[v1alpha1.ImportTLS]string{
	v1alpha1.ImportVerifyFull: "verify-full", v1alpha1.ImportVerifyCA: "verify-ca", v1alpha1.ImportRequire: "require", v1alpha1.ImportDisable: "disable",
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

// importFile is what the program in members has to know of an import.
func importFile(i *engine.Import) *members.Import {
	if i == nil {
		return nil
	}
	out := &members.Import{Host: i.Host, Port: i.Port, TLS: sslModes[i.TLS], Object: i.Object, Ended: i.Ended}
	for _, d := range i.Databases {
		out.Databases = append(out.Databases, members.ImportDatabase{Name: d.Name, Source: d.Source})
	}
	for _, s := range slices.Sorted(slices.Values(i.Skip)) {
		out.Skip = append(out.Skip, string(s))
	}
	if c := i.CutOver; c != nil {
		out.CutOver = &members.CutOver{ID: c.ID, StopWrites: c.StopWrites}
	}
	return out
}
