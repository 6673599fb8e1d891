// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Ports of Spark, at which the pods of a run reach each other.
const (
	masterPort = 7077
	driverPort = 7078
	blockPort  = 7079
)

// SparkPorts are ports that no program can have.
func SparkPorts() []int32 { return []int32{masterPort, driverPort, blockPort} }

// Memory of Spark's processes in MiB. A master or worker takes its heap and as much again; beside the heap of a driver or an executor
// there are threads, buffers and Python.
const (
	daemonHeap  = 160
	daemonTotal = 320
	leastBeside = 384
	leastHeap   = 480 // Spark refuses less.
)

// SparkMemory is the least memory of a pod.
const SparkMemory = (daemonTotal + leastBeside + leastHeap) << 20

// SparkOwn are settings of Spark that Capstan sets.
var SparkOwn = []string{
	"spark.blockManager.port", "spark.cores.max", "spark.driver.bindAddress", "spark.driver.host", "spark.driver.memory", "spark.driver.port", "spark.executor.cores",
	"spark.executor.memory", "spark.local.dir", "spark.master", "spark.submit.deployMode",
}

// heap of a driver or an executor in a pod with so much memory, in MiB.
func heap(memory resource.Quantity) int64 {
	rest := memory.Value()>>20 - daemonTotal
	return rest - max(leastBeside, rest/10)
}

// cores of an executor.
func cores(cpu resource.Quantity) int64 { return max(1, cpu.Value()) }

// spark is the pod of index 0, with the master and the driver, and the others with a worker each that has one executor.
func (in Inputs) spark() []runner.Role {
	s := in.Spec.Spark
	master := fmt.Sprintf("spark://$(%s):%d", runner.EnvLeader, masterPort)
	class := path.Join(s.Home, "bin", "spark-class")
	resources := in.resources()
	memory, each := fmt.Sprintf("%dm", heap(*resources.Memory)), cores(*resources.CPU)
	daemon := map[string]string{
		"SPARK_DAEMON_MEMORY": fmt.Sprintf("%dm", daemonHeap), "SPARK_NO_DAEMONIZE": "true",
		// A name that was not there yet is looked up again soon.
		"SPARK_DAEMON_JAVA_OPTS": "-Dsun.net.inetaddr.negative.ttl=1 -Dsun.net.inetaddr.ttl=5",
	}
	own := map[string]v1alpha1.PipelineSetting{
		"spark.driver.host": v1alpha1.PipelineSetting("$(" + runner.EnvLeader + ")"), "spark.driver.bindAddress": "0.0.0.0",
		"spark.driver.port": v1alpha1.PipelineSetting(strconv.Itoa(driverPort)), "spark.blockManager.port": v1alpha1.PipelineSetting(strconv.Itoa(blockPort)),
		"spark.executor.cores": v1alpha1.PipelineSetting(strconv.FormatInt(each, 10)), "spark.cores.max": v1alpha1.PipelineSetting(strconv.FormatInt(each*int64(*s.Executors), 10)),
		"spark.local.dir": runner.ScratchDir,
	}
	submit := []string{path.Join(s.Home, "bin", "spark-submit"), "--master", master, "--deploy-mode", "client", "--name", in.Name, "--driver-memory", memory, "--executor-memory", memory}
	submit = append(submit, settings("--conf", s.Conf)...)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		submit = append(submit, "--conf", name+"="+string(own[name]))
	}
	if s.MainClass != "" {
		submit = append(submit, "--class", escape(s.MainClass))
	}
	return []runner.Role{
		{
			Name: "Driver", Indexes: []int{0},
			Beside: []runner.Process{{
				Name:    "master",
				Command: []string{class, "org.apache.spark.deploy.master.Master", "--host", "$(" + runner.EnvLeader + ")", "--port", strconv.Itoa(masterPort)},
				Env:     daemon,
			}},
			Main: runner.Process{Name: "driver", Command: submit, Args: true},
		},
		{
			Name: "Worker", Serves: true,
			Main: runner.Process{
				Name: "worker",
				Command: []string{
					class, "org.apache.spark.deploy.worker.Worker", "--host", "$(" + runner.EnvHost + ")", "--cores", strconv.FormatInt(each, 10),
					"--memory", memory, "--work-dir", path.Join(runner.ScratchDir, "work"), master,
				},
				Env: daemon,
			},
		},
	}
}
