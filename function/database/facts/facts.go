// SPDX-License-Identifier: Apache-2.0

// Package facts decodes one request: the spec of a Database, the platform, what is remembered, and what was observed of a generation.
// Nothing in it changes in a pass.
package facts

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/function/signals"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// Facts of a Database that all its generations share: its spec, the platform, and what is remembered. They do not change in a
// pass.
type Facts struct {
	compose.Request
	memory.Recollection

	Engine engine.Engine

	// Release of this function, which our image is of, too.
	Release release.Release

	// Spec with its defaults.
	Spec v1alpha1.DatabaseSpec

	// Problems of the spec. As long as there are any, nothing is changed. Refused are the problems of a spec that another one
	// stands in for.
	Problems, Refused []check.Problem

	// Catalogue of images of the engine, and size of the members.
	Catalogue []inputv1alpha1.DatabaseImage
	Size      Size

	// Signals from outside that are in force, as the Topology of the active generation reports them.
	Signals signals.Set

	// HookRuns are the runs of hooks that Signals ask for, and ToldRuns those that the status has.
	ToldRuns, HookRuns signals.Runs

	// Opened are the Secrets with which members open the place of backups, the active generation's first.
	Opened []string
}

// A Cluster is one generation of a Database: its members as they were observed. It does not change in a pass.
type Cluster struct {
	*Facts
	names.Names

	// Side is a generation that is not the active one. The Database serves without what it has.
	Side bool

	// Data is the major version of the data; of a generation that has none, the version it is created with. Image has the
	// programs.
	Data  string
	Image Image

	// Sets are the StatefulSets that exist, by the letter of their member.
	Sets map[string]Set

	// Seen is what the Topology reports, once it was observed.
	Seen        observev1alpha1.TopologyObservation
	HasTopology bool

	// OnDisk is what the VolumeClaim reports of volumes, and sizes what follows for them.
	OnDisk storagev1alpha1.VolumeClaimObservation
	Sizes  Sizes
}

// Awaited is what there cannot be members without.
type Awaited struct {
	Reason  xpv2.ConditionReason
	Message string
}
