// SPDX-License-Identifier: Apache-2.0

package pgmember

// FolderImport holds the Secret of what a Database is imported from. Of a server: host, username, password, and optionally ca.crt. Of dumps: what
// the connection Secret of a bucket has.
const FolderImport = "/etc/capstan/import"

// What an import may leave out.
const (
	SkipLargeObjects   = "LargeObjects"
	SkipUnloggedTables = "UnloggedTables"
)

// Import is a running server whose databases are copied and followed until the cut-over. It stays in the file afterwards: what became of it
// is in the data itself.
type Import struct {
	Host string `json:"host"`
	Port int32  `json:"port"`
	// TLS is libpq's sslmode.
	TLS string `json:"tls"`
	// Databases to fill.
	Databases []ImportDatabase `json:"databases"`
	// Skip names what may be left out.
	Skip []string `json:"skip,omitempty"`
	// CutOver is the request to end the import. Nil: follow the source.
	CutOver *CutOver `json:"cutOver,omitempty"`
	// Object is the uid of the Database. Data that another one has left behind takes a request that is there already for a copied one.
	Object string `json:"object,omitempty"`
	// Ended: consumers have logins, so nothing is imported, also into empty data.
	Ended bool `json:"ended,omitempty"`
}

// An ImportDatabase is a database of this server, and the database of the source that fills it.
type ImportDatabase struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// CutOver requests the end of an import, once for each ID.
type CutOver struct {
	ID string `json:"id"`
	// StopWrites makes the databases of the source read-only and ends sessions there. Otherwise the cut-over waits until nothing writes.
	StopWrites bool `json:"stopWrites,omitempty"`
}
