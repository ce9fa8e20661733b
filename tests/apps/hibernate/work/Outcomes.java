package work;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.util.*;

/** The outcomes of steps, by their names; written as one JSON object. */
class Outcomes {
    interface Step { Object run() throws Exception; }

    private final Map<String, Object> found = new LinkedHashMap<>();

    /** Runs a step; its outcome is its value, or the error that ended it. */
    void step(String name, Step step) {
        Object outcome;
        try {
            outcome = plain(step.run());
        } catch (Throwable e) {
            outcome = error(e);
        }
        if (found.put(name, outcome) != null) throw new IllegalStateException("two steps " + name);
    }

    /** The classes of an exception and its causes, with the server's error if there is one. */
    static List<Object> error(Throwable e) {
        List<Object> chain = new ArrayList<>();
        for (Throwable t = e; t != null && chain.size() < 6; t = t.getCause()) {
            if (t instanceof SQLException s) chain.add(List.of(t.getClass().getSimpleName(), s.getErrorCode(), String.valueOf(s.getSQLState()), String.valueOf(s.getMessage())));
            else chain.add(t.getClass().getSimpleName());
        }
        if (chain.stream().noneMatch(c -> c instanceof List)) chain.add(String.valueOf(e.getMessage()).lines().findFirst().orElse(""));
        return chain;
    }

    /** A value as JSON has it. */
    static Object plain(Object value) {
        if (value == null || value instanceof String || value instanceof Boolean || value instanceof Integer || value instanceof Long) return value;
        if (value instanceof byte[] bytes) return HexFormat.of().formatHex(bytes.length > 64 ? Arrays.copyOf(bytes, 64) : bytes) + "/" + bytes.length;
        if (value instanceof int[] ints) return Arrays.toString(ints);
        if (value instanceof Object[] values) return Arrays.stream(values).map(Outcomes::plain).toList();
        if (value instanceof Collection<?> values) return values.stream().map(Outcomes::plain).toList();
        if (value instanceof Map<?, ?> map) {
            Map<String, Object> copy = new LinkedHashMap<>();
            map.forEach((k, v) -> copy.put(String.valueOf(k), plain(v)));
            return copy;
        }
        return value.toString();
    }

    void write() throws Exception {
        new PrintStream(System.out, true, StandardCharsets.UTF_8).println(new ObjectMapper().writeValueAsString(found));
    }
}
