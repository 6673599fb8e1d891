// SPDX-License-Identifier: Apache-2.0

// Command demo-training is a training that learns nothing, in a controlled way, and keeps account: its ranks add up numbers step by step,
// write checkpoints, resume from them, and fail on request. Demos and tests of trainings are made with it.
//
//	demo-training --steps=600 --step=100ms --every=20                is one rank: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which
//	demo-training --fault=kill:1:30 --fault=hang:0:60:1              rank 1 is killed at step 30 of the first attempt, and so on
//	echo nan >/checkpoints/fault-3                                   rank 3 has a loss that is not a number at its next step
//
// The number that a rank adds at a step depends on both and on nothing else. So the sum after the last step is known beforehand, and it
// is right only if each step of each rank was counted exactly once, with any number of faults. Rank 0 compares, prints a Result as JSON on
// one line, writes it to result.json in the folder of checkpoints, and fails if the sum is wrong.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// terminated is the exit code of a rank that got SIGTERM and has written a checkpoint.
const terminated = 128 + int(syscall.SIGTERM)

// Options of a rank.
type Options struct {
	Steps  int64         `default:"100"   env:"STEPS"                                                                                                                                                                       help:"Steps of the whole training."`
	Step   time.Duration `default:"100ms" env:"STEP_TIME"                                                                                                                                                                   help:"How long a step takes."`
	Start  time.Duration `default:"0s"    env:"START_TIME"                                                                                                                                                                  help:"How long a rank takes before it joins the others, as programs do that load libraries."`
	Every  int64         `default:"10"    env:"EVERY"                                                                                                                                                                       help:"Write a checkpoint after so many steps. 0 writes none."`
	Keep   int           `default:"5"     env:"KEEP"                                                                                                                                                                        help:"How many checkpoints are kept, at least 1."`
	Pad    int           `default:"0"     env:"PAD"                                                                                                                                                                         help:"Bytes that each rank adds to its part of a checkpoint, to fill a volume."`
	Report string        `default:"File"  enum:"File,Output"                                                                                                                                                                env:"REPORT"                                                                                 help:"Where progress is reported: in the file of CAPSTAN_PROGRESS and in the output, or in the output only."`
	Fault  []string      `env:"FAULT"     help:"Fault as KIND:RANK:STEP or KIND:RANK:STEP:ATTEMPT. The kinds are exit, kill, hang, deaf, nan, slow and memory. The attempt is 0 unless it is named, and * is each attempt." placeholder:"KIND:RANK:STEP"`

	Export  string  `env:"EXPORT"                  help:"Where rank 0 writes the model after the last step, as s3://BUCKET/PREFIX. {run} stands for the number of the run."`
	Account string  `default:"/etc/secrets/models" env:"EXPORT_ACCOUNT"                                                                                                     help:"Folder with the connection Secret of the Bucket."`
	Flaw    float64 `default:"0"                   env:"FLAW"                                                                                                               help:"Share of predictions that fail with the model, from 0 to 1."`

	Run   string `default:"0"        env:"CAPSTAN_RUN"         hidden:""`
	RunID string `default:"training" env:"TORCHELASTIC_RUN_ID" hidden:""`

	Rank        int           `default:"0"               env:"RANK"                                                         hidden:""`
	World       int           `default:"1"               env:"WORLD_SIZE"                                                   hidden:""`
	Address     string        `default:"127.0.0.1"       env:"MASTER_ADDR"                                                  hidden:""`
	Port        int           `default:"29400"           env:"MASTER_PORT"                                                  hidden:""`
	Attempt     int           `default:"0"               env:"CAPSTAN_ATTEMPT"                                              hidden:""`
	Interval    int64         `default:"0"               env:"CAPSTAN_CHECKPOINT_EVERY"                                     help:"Write a checkpoint after so many seconds instead. 0 counts steps."`
	Checkpoints string        `default:"."               env:"CAPSTAN_CHECKPOINTS"                                          help:"Folder for checkpoints, which all ranks share."`
	Resume      string        `env:"CAPSTAN_RESUME_FROM" help:"Checkpoint to begin with. Empty begins with the first step."`
	Progress    string        `env:"CAPSTAN_PROGRESS"    hidden:""`
	Join        time.Duration `default:"60s"             env:"JOIN_TIME"                                                    help:"How long ranks wait for each other at the start."`
}

func main() {
	var o Options
	kong.Parse(&o, kong.Name("demo-training"), kong.Description("A training for demos and tests."))
	// After the first SIGTERM all ranks write a last checkpoint. What blocks for ever is killed by who sent it.
	var leaving atomic.Bool
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		leaving.Store(true)
	}()
	code, err := run(context.Background(), o, os.Stdout, leaving.Load)
	if err != nil {
		slog.Error("cannot train", "rank", o.Rank, "error", err)
	}
	os.Exit(code)
}
