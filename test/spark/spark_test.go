// SPDX-License-Identifier: Apache-2.0

//go:build spark && linux

// Package spark_test runs Spark itself with the companion, in pods that are namespaces of this machine, by the plan that the function makes
// of a Pipeline. It needs root, Linux, and the tools of "go -C hack run ./programs spark".
package spark_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/pipeline/names"
	"github.com/capstan-dev/capstan/function/pipeline/pods"
)

const (
	workers = 2
	tasks   = 40
	// long is more than anything takes on a busy machine.
	long = 5 * time.Minute
)

// plan of a Pipeline with so many executors, each in a pod of the least memory.
func plan(executors int32, rules ...v1alpha1.PipelineRetryRule) runner.Plan {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	return pods.Inputs{
		Names: names.Names{Name: "squares", Namespace: "test"},
		Run:   "a",
		Spec: v1alpha1.PipelineSpec{
			Engine: v1alpha1.PipelineSpark,
			Spark: &v1alpha1.PipelineSparkSpec{
				Home: sparkDir, MainClass: "Squares", Executors: new(executors), Conf: map[string]v1alpha1.PipelineSetting{"spark.ui.enabled": "false"},
			},
			Resources: &v1alpha1.Resources{CPU: new(resource.MustParse("1")), Memory: new(resource.MustParse("1184Mi"))},
			Retry: &v1alpha1.PipelineRetry{
				Attempts: new(int32(3)), ResetAfter: seconds(3600), Rules: rules,
				Backoff: &v1alpha1.PipelineBackoff{From: seconds(1), To: seconds(10), Factor: new(2.0), JitterPercent: new(int32(0))},
			},
			GracePeriod: seconds(30),
		},
	}.Plan()
}

// squares is an application with a fault.
func squares(t *testing.T, job, fault string, rules ...v1alpha1.PipelineRetryRule) *application {
	t.Helper()
	home, folder := sparkHome(t), t.TempDir()
	compile(t, home, filepath.Join(folder, "squares.jar"))
	a := prepare(t, workers, job, home, folder, plan(workers, rules...), shared+"/squares.jar", shared, strconv.Itoa(tasks), "500", fault)
	a.submit()
	return a
}

// began is how many tasks have begun, with those that began once more.
func (a *application) began() int {
	return len(strings.Fields(a.read("tasks"))) / 2
}

// done waits for the end of the application, whose result has to be exact. The Job would end the other pods.
func (a *application) done() {
	a.t.Helper()
	if code := a.ends(0, long); code != runner.ExitDone {
		a.fatalf("the driver should succeed, got exit code %d: %s", code, a.read(a.pods[0].Host+".termination"))
	}
	if want, got := strconv.Itoa(tasks*(tasks+1)*(2*tasks+1)/6), a.read("sum"); got != want {
		a.fatalf("the sum of %d squares is %s, got %q", tasks, want, got)
	}
	for i := 1; i < len(a.pods); i++ {
		if code := a.terminate(i, time.Minute); code != runner.ExitEnded {
			a.t.Errorf("a worker that has to go should end with %d, got %d", runner.ExitEnded, code)
		}
	}
}

func TestApplication(t *testing.T) {
	since := time.Now()
	a := squares(t, "done", "none")
	a.until("the first task begins", long, func() bool { return a.began() > 0 })
	t.Logf("the first task began %s after the pods", time.Since(since).Round(100*time.Millisecond))
	a.done()
	t.Logf("done after %s", time.Since(since).Round(100*time.Millisecond))
	if a.began() != tasks {
		t.Errorf("each of %d tasks should begin once, got %d", tasks, a.began())
	}
}

func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		strike func(*application)
	}{
		"executor": {
			reason: "its worker starts another one, and the application waits for it",
			strike: func(a *application) {
				a.killed(1, "CoarseGrainedExecutorBackend")
				a.until("the worker notices it", long, func() bool { return strings.Contains(a.pods[1].log.String(), "exitStatus 137") })
			},
		},
		"worker": {
			reason: "the companion starts it again in its pod",
			strike: func(a *application) {
				a.killed(2, "deploy.worker.Worker")
				a.until("it is reported", long, func() bool {
					s, err := a.state(2)
					return err == nil && s.LastFailure != nil && s.LastFailure.ExitCode == -1
				})
			},
		},
		"pod": {
			reason: "another pod takes its place, with the same name and another worker",
			strike: func(a *application) {
				a.pods[2].kill()
				a.start(2)
			},
		},
		"master": {
			reason: "the companion starts it again beside the driver, and the application goes on without it meanwhile",
			strike: func(a *application) {
				before := a.killed(0, "deploy.master.Master")
				a.until("it runs again", long, func() bool { now := a.pods[0].process(a.t, "deploy.master.Master"); return now != 0 && now != before })
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := squares(t, name, "none")
			a.until("tasks begin", long, func() bool { return a.began() > 4 })
			struck := time.Now()
			tc.strike(a)
			a.done()
			t.Logf("%s: done %s after the fault, with %d tasks begun again", tc.reason, time.Since(struck).Round(100*time.Millisecond), a.began()-tasks)
		})
	}
}

func TestDriverFails(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		a := squares(t, "once", "once")
		a.until("the driver fails", long, func() bool { s, err := a.state(0); return err == nil && s.LastFailure != nil })
		s, err := a.state(0)
		if err != nil {
			t.Fatal(err)
		}
		if f := s.LastFailure; f.ExitCode != 3 || f.Class != runner.ClassUser || !strings.Contains(f.Message+f.Lines, "no table features") {
			t.Errorf("want exit code 3 and the line of the driver, got %+v", f)
		}
		a.done()
		if got, want := a.began(), 2*tasks; got != want {
			t.Errorf("both attempts should have all tasks, %d, got %d", want, got)
		}
	})
	t.Run("rule", func(t *testing.T) {
		a := squares(t, "rule", "always", v1alpha1.PipelineRetryRule{When: v1alpha1.PipelineFailure{ExitCodes: []int32{3}}, Do: v1alpha1.PipelineDoFail})
		if code := a.ends(0, long); code != runner.ExitFailed {
			t.Errorf("a rule should end the run with %d, got %d", runner.ExitFailed, code)
		}
		if words := a.read(a.pods[0].Host + ".termination"); !strings.Contains(words, "no table features") {
			t.Errorf("the last words should have the line of the driver, got %s", words)
		}
		if a.began() != tasks {
			t.Errorf("the driver should run once, got %d tasks", a.began())
		}
	})
}

// TestEnds has the driver's pod go in the middle of the application.
func TestEnds(t *testing.T) {
	a := squares(t, "ends", "none")
	a.until("tasks begin", long, func() bool { return a.began() > 4 })
	if code := a.terminate(0, time.Minute); code != runner.ExitEnded {
		t.Errorf("a pod that has to go should end with %d, got %d", runner.ExitEnded, code)
	}
	if sum := a.read("sum"); sum != "" {
		t.Errorf("there should be no result, got %s", sum)
	}
}
