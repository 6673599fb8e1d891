// SPDX-License-Identifier: Apache-2.0

// Package xfs names what the machines of a cluster and its add-ons agree on about the StorageClass whose volumes have the
// requested size, and grow. Its driver is hack/internal/xfsdriver.
package xfs

const (
	// Driver is the provisioner of the class.
	Driver = "xfs.capstan.dev"
	// Class of storage.
	Class = "capstan-xfs"
	// SnapshotClass of snapshots of its volumes, where the add-on snapshots is installed.
	SnapshotClass = "capstan-xfs"
	// Socket is where a machine's driver serves.
	Socket = "/run/xfs/csi.sock"
)
