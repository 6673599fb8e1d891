// SPDX-License-Identifier: Apache-2.0

package members

// SuffixReadWrite ends the name of the Service that leads to the leader of a Database.
const SuffixReadWrite = "rw"

// ServiceReadWrite names the Service that leads to the leader of a Database.
func ServiceReadWrite(database string) string { return database + "-" + SuffixReadWrite }

// SuffixPods ends the name of the Service in which members of every generation of a Database
// have names, such as orders-db-a-0.orders-db-pods.
const SuffixPods = "pods"

// ServicePods names the Service in which members of a Database have names.
func ServicePods(database string) string { return database + "-" + SuffixPods }
