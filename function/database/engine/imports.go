// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Imports of an engine.
type Imports struct {
	// First version that can be filled from a running server.
	First string

	// Logins that an import makes in the server, if the schema of Databases does not refuse consumers with their names.
	Logins []string

	// TLS that an import can have, in the words of members.
	TLS map[v1alpha1.ImportTLS]string

	// Skips are what an import can leave behind.
	Skips []v1alpha1.ImportSkip

	// Failing is what happens at the source meanwhile, when changes are not applied.
	Failing string

	// Renames reports that a database can have another name than the one of the source.
	Renames bool
}

// Import is a running server whose databases are copied and followed until a cut-over.
type Import struct {
	Host string
	Port int32
	TLS  v1alpha1.ImportTLS

	// Databases to fill.
	Databases []v1alpha1.ImportedDatabase

	// Skip is what may be left behind.
	Skip []v1alpha1.ImportSkip

	// CutOver is the request to end the import; nil without one.
	CutOver *v1alpha1.DatabaseCutOver

	// Object is the uid of the Database.
	Object string

	// Ended reports that consumers have logins: nothing is imported any more, also into empty data.
	Ended bool
}

// File is what the program in members has to know of an import, in the words of an engine for TLS; nil without an import.
func (i *Import) File(tls map[v1alpha1.ImportTLS]string) *members.Import {
	if i == nil {
		return nil
	}
	out := &members.Import{Host: i.Host, Port: i.Port, TLS: tls[i.TLS], Object: i.Object, Ended: i.Ended}
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
