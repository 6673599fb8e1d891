// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	contract "github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/flink"
)

// flinkCmd is the first process of a pod of a stream.
type flinkCmd struct {
	JobManager  jobManagerCmd  `cmd:"" help:"Run the JobManager from the newest complete state, and stop it with a savepoint." name:"jobmanager"`
	TaskManager taskManagerCmd `cmd:"" help:"Run a TaskManager."                                                               name:"taskmanager"`
}

// flinkPod is what both roles need.
type flinkPod struct {
	Plan     string  `default:"/capstan/plan/plan.json" help:"File with what the companions of the stream follow."                            type:"path"`
	Scratch  string  `default:"/capstan/run"            help:"Folder of the pod for Flink's configuration."                                   type:"path"`
	Host     string  `env:"POD_IP"                      help:"Address of this pod."`
	Bind     string  `default:"0.0.0.0"                 help:"Address to listen at for other pods."`
	Loopback string  `default:"127.0.0.1"               help:"Address at which Flink's REST API listens."`
	Java     string  `env:"FLINK_JAVA"                  help:"Java to start Flink with. Default: that below JAVA_HOME, or the first in PATH."`
	Memory   int64   `env:"MEMORY_LIMIT"                help:"Memory of this container in bytes. Default: by its control group."`
	CPUs     float64 `env:"CPU_REQUEST"                 help:"Processors of this container."`
}

type (
	jobManagerCmd  struct{ flinkPod }
	taskManagerCmd struct{ flinkPod }
)

func (p flinkPod) config(log *slog.Logger) (flink.Config, error) {
	raw, err := os.ReadFile(filepath.Clean(p.Plan))
	if err != nil {
		return flink.Config{}, fmt.Errorf("cannot read the plan of the stream: %w", err)
	}
	plan, err := contract.ParsePlan(raw)
	return flink.Config{
		Plan: plan, Scratch: p.Scratch, Host: p.Host, Bind: p.Bind, Loopback: p.Loopback, Java: p.Java, Limit: p.Memory, CPUs: p.CPUs, Out: os.Stdout, Log: log,
	}, err
}

// Run until the pod has to go.
func (c *jobManagerCmd) Run(ctx context.Context, log *slog.Logger, all *cli) error {
	config, err := c.config(log)
	if err != nil {
		return err
	}
	words, err := flink.RunJobManager(ctx, config)
	if err != nil {
		return err
	}
	leave(all.TerminationLog, words)
	return nil
}

// Run until the pod has to go.
func (c *taskManagerCmd) Run(ctx context.Context, log *slog.Logger) error {
	config, err := c.config(log)
	if err != nil {
		return err
	}
	return flink.RunTaskManager(ctx, config)
}
