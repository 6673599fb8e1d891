// SPDX-License-Identifier: Apache-2.0

// Package flink runs the companion as the first process of the pods of a stream with Apache Flink: it starts the JobManager from the newest
// complete state, and stops it with a savepoint when its pod has to go; or it runs a TaskManager.
package flink

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

// Config of a companion.
type Config struct {
	Plan flink.Plan
	// Home has Flink. Default: FLINK_HOME, or DefaultHome.
	Home string
	// Java to start Flink with. Default: that below JAVA_HOME, or the first in PATH.
	Java string
	// Scratch is a folder for Flink's configuration and files that need not last.
	Scratch string
	// Host is the address of the pod. Default: Flink finds out.
	Host string
	// Bind is the address to listen at for other pods. Default: all of the pod.
	Bind string
	// Loopback is the address for the companion itself. Default: 127.0.0.1.
	Loopback string
	// Limit of the pod's memory in bytes, and its processors. Default: by its control group; without limits, Flink's defaults.
	Limit int64
	CPUs  float64
	// Out gets what Flink writes.
	Out io.Writer
	Log *slog.Logger
}

// withDefaults in the place of what is not set.
func (c Config) withDefaults() Config {
	c.Home = cmp.Or(c.Home, c.Plan.Home, os.Getenv("FLINK_HOME"), flink.DefaultHome)
	if home := os.Getenv("JAVA_HOME"); c.Java == "" && home != "" {
		c.Java = filepath.Join(home, "bin", "java")
	}
	c.Java = cmp.Or(c.Java, "java")
	c.Scratch = cmp.Or(c.Scratch, flink.ScratchDir)
	c.Bind = cmp.Or(c.Bind, "0.0.0.0")
	c.Loopback = cmp.Or(c.Loopback, "127.0.0.1")
	if c.Limit == 0 {
		c.Limit = (process.Memory{}).Limit()
	}
	c.Plan = c.Plan.WithDefaults()
	return c
}
