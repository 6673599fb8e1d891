// SPDX-License-Identifier: Apache-2.0

package pgmember

// Formats of dumps.
const (
	DumpCustom    = "Custom"
	DumpDirectory = "Directory"
	DumpTar       = "Tar"
	DumpPlain     = "Plain"
)

// Dumps in a bucket fill databases once. They stay in the file afterwards: what became of them is in the data itself.
type Dumps struct {
	// Databases to fill.
	Databases []Dump `json:"databases"`
	// Ended: consumers have logins, so nothing is restored, also into empty data.
	Ended bool `json:"ended,omitempty"`
}

// A Dump fills a database of this server.
type Dump struct {
	Name string `json:"name"`
	// Path in the bucket: the key of a file, or what is before /toc.dat.
	Path string `json:"path"`
	// Format that it has to have. "": the one that it has.
	Format string `json:"format,omitempty"`
}
