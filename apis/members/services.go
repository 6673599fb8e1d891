// SPDX-License-Identifier: Apache-2.0

package members

// SuffixReadWrite ends the name of the Service that leads to the leader of a Database.
const SuffixReadWrite = "rw"

// ServiceReadWrite names the Service that leads to the leader of a Database.
func ServiceReadWrite(database string) string { return database + "-" + SuffixReadWrite }
