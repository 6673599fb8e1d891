// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/outcome"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/snapshot"
)

// Snapshot takes a snapshot of the volume of one member. It runs in a pod of its own, and needs nothing but the API server.
type Snapshot struct {
	Class  string `help:"VolumeSnapshotClass of the snapshot." placeholder:"NAME"   required:""`
	Keep   int    `help:"Number of snapshots to keep."         placeholder:"NUMBER" required:""`
	Stanza string `help:"Stanza with the archive of the data." placeholder:"NAME"   required:""`

	Namespace string `env:"POD_NAMESPACE"    help:"Namespace of the Database."                         placeholder:"NAME"  required:""`
	Name      string `env:"CAPSTAN_NAME"     help:"Name of the Database."                              placeholder:"NAME"  required:""`
	Database  string `env:"CAPSTAN_DATABASE" help:"Value of the label of its members."                 placeholder:"NAME"  required:""`
	Identity  string `env:"CAPSTAN_IDENTITY" help:"Identity of the Database, which its volumes carry." placeholder:"HEX"   required:""`
	Version   string `env:"CAPSTAN_VERSION"  help:"Major version of PostgreSQL."                       placeholder:"MAJOR" required:""`

	Output string `default:"/dev/termination-log" env:"TERMINATION_LOG" help:"File that the result is written to as well." hidden:""`
}

// Run takes the snapshot and removes those that are not kept.
func (c *Snapshot) Run(ctx context.Context, log *slog.Logger) error {
	k, err := kube.InCluster()
	if err != nil {
		return err
	}
	taken, err := (&snapshot.Taker{
		REST: k.REST, Namespace: c.Namespace, Name: c.Name, Base: c.Database, Identity: c.Identity, Version: c.Version, Stanza: c.Stanza,
		Class: c.Class, Keep: c.Keep, Poll: time.Second, Log: log,
	}).Run(ctx)
	if err != nil {
		return err
	}
	return outcome.Print(os.Stdout, c.Output, taken)
}
