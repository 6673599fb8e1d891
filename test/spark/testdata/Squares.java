// SPDX-License-Identifier: Apache-2.0

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Adds squares, one per task, and writes the result to the file "sum" of a folder that all pods see. Arguments are the folder, the number of
 * tasks, the milliseconds of each, and a fault of the driver: "none", "once" for exit code 3 in its first attempt, or "always".
 * Each task appends "NUMBER TIME" to the file "tasks" when it begins.
 */
public class Squares {
  public static void main(String[] args) throws Exception {
    final String shared = args[0];
    final int tasks = Integer.parseInt(args[1]);
    final long pause = Long.parseLong(args[2]);
    try (JavaSparkContext spark = new JavaSparkContext(new SparkConf())) {
      List<Integer> numbers = new ArrayList<>();
      for (int i = 1; i <= tasks; i++) {
        numbers.add(i);
      }
      long sum = spark.parallelize(numbers, tasks).map(n -> {
        Files.writeString(Path.of(shared, "tasks"), n + " " + System.currentTimeMillis() + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        Thread.sleep(pause);
        return (long) n * n;
      }).reduce(Long::sum);
      if (args[3].equals("always") || args[3].equals("once") && System.getenv("CAPSTAN_ATTEMPT").equals("0")) {
        System.err.println("no table features: create it first");
        System.exit(3);
      }
      Files.writeString(Path.of(shared, "sum"), sum + "\n");
    }
  }
}
