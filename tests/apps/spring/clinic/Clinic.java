package clinic;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.*;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.core.NestedRuntimeException;
import org.springframework.dao.*;
import org.springframework.data.domain.*;
import org.springframework.data.jpa.domain.Specification;
import org.springframework.http.*;
import org.springframework.orm.jpa.JpaSystemException;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.*;
import org.springframework.web.bind.annotation.*;
import org.springframework.web.server.ResponseStatusException;

@SpringBootApplication
public class Clinic {
    public static void main(String[] args) {
        SpringApplication.run(Clinic.class, args);
    }
}

@Service
class Work {
    final Owners owners;
    final Pets pets;
    final Types types;

    Work(Owners owners, Pets pets, Types types) {
        this.owners = owners;
        this.pets = pets;
        this.types = types;
    }

    static ResponseStatusException absent() {
        return new ResponseStatusException(HttpStatus.NOT_FOUND);
    }

    @Transactional
    public Pet addPet(long owner, Map<String, String> of) {
        Pet pet = new Pet();
        pet.owner = owners.findById(owner).orElseThrow(Work::absent);
        pet.type = types.findByName(of.get("type")).orElseThrow(Work::absent);
        pet.name = of.get("name");
        pet.birthDate = of.get("born") == null ? null : LocalDate.parse(of.get("born"));
        pet.mood = Mood.valueOf(of.getOrDefault("mood", "CALM"));
        return pets.save(pet);
    }

    /** Moves money under locks; an overdraft violates a CHECK and rolls everything back. */
    @Transactional(isolation = Isolation.READ_COMMITTED)
    public List<Owner> pay(long from, long to, BigDecimal sum) {
        List<Owner> both = owners.lock(List.of(from, to));
        for (Owner owner : both) {
            owner.balance = owner.id == to ? owner.balance.add(sum) : owner.balance.subtract(sum);
        }
        return owners.saveAllAndFlush(both);
    }

    @Transactional
    public int raiseCity(String city) {
        return owners.raiseCity(city);
    }

    @Transactional(readOnly = true)
    public Owner whole(long id) {
        return owners.findWithPetsById(id).orElseThrow(Work::absent);
    }

    @Transactional
    public void fail(long id) {
        owners.findById(id).orElseThrow(Work::absent).city = "lost";
        owners.flush();
        throw new IllegalStateException("as it should");
    }

    @Transactional
    public Owner change(long id, Map<String, Object> of) {
        Owner owner = owners.findById(id).orElseThrow(Work::absent);
        if (of.containsKey("version") && owner.version != (Integer) of.get("version")) {
            throw new OptimisticLockingFailureException("another version");
        }
        owner.city = (String) of.getOrDefault("city", owner.city);
        owner.telephone = (String) of.getOrDefault("telephone", owner.telephone);
        owners.flush();
        return owners.findWithPetsById(id).orElseThrow(Work::absent);
    }
}

@RestController
class Pages {
    final Work work;
    final Owners owners;
    final Pets pets;
    final Visits visits;
    final Vets vets;
    final Specialties specialties;

    Pages(Work work, Owners owners, Pets pets, Visits visits, Vets vets, Specialties specialties) {
        this.work = work;
        this.owners = owners;
        this.pets = pets;
        this.visits = visits;
        this.vets = vets;
        this.specialties = specialties;
    }

    @ExceptionHandler({DataIntegrityViolationException.class, JpaSystemException.class})
    ResponseEntity<String> violated(NestedRuntimeException e) {
        return ResponseEntity.status(HttpStatus.CONFLICT).body(String.valueOf(e.getMostSpecificCause().getMessage()));
    }

    @ExceptionHandler(OptimisticLockingFailureException.class)
    ResponseEntity<String> outdated(OptimisticLockingFailureException e) {
        return ResponseEntity.status(HttpStatus.PRECONDITION_FAILED).body("another version");
    }

    @ExceptionHandler(IllegalStateException.class)
    ResponseEntity<String> failed(IllegalStateException e) {
        return ResponseEntity.internalServerError().body(e.getMessage());
    }

    static Map<String, Object> page(Slice<Owner> page) {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("names", page.map(o -> o.fullName + ", " + o.city).getContent());
        all.put("next", page.hasNext());
        if (page instanceof Page<Owner> whole) {
            all.put("total", whole.getTotalElements());
        }
        return all;
    }

    @PostMapping("/owners")
    @ResponseStatus(HttpStatus.CREATED)
    List<Owner> add(@RequestBody List<Owner> all) {
        return owners.saveAllAndFlush(all);
    }

    @GetMapping("/owners")
    Map<String, Object> list(@RequestParam(defaultValue = "") String last, @RequestParam int page, @RequestParam int size, @RequestParam(defaultValue = "id") String sort) {
        return page(owners.findByLastNameStartingWithIgnoreCase(last, PageRequest.of(page, size, Sort.by(sort).descending().and(Sort.by("id")))));
    }

    @GetMapping("/owners/in")
    Map<String, Object> in(@RequestParam List<String> city) {
        return page(owners.findByCityIn(city, PageRequest.of(0, 2, Sort.by("lastName", "id"))));
    }

    @GetMapping("/owners/richer")
    List<String> richer(@RequestParam BigDecimal than, @RequestParam String like) {
        Specification<Owner> richer = (o, q, b) -> b.greaterThan(o.get("balance"), than);
        Specification<Owner> named = (o, q, b) -> b.like(b.lower(o.get("firstName")), "%" + like + "%");
        return owners.findAll(richer.or(named), Sort.by("id")).stream().map(o -> o.fullName).toList();
    }

    @GetMapping("/owners/{id}")
    Owner one(@PathVariable long id) {
        return work.whole(id);
    }

    @GetMapping("/owners/named")
    String named(@RequestParam String part) {
        return owners.findFirstByFullNameContainingOrderByIdDesc(part).map(o -> o.fullName).orElse("none") + " " + owners.existsByTelephone("1") + " " + owners.existsByTelephone("none");
    }

    @PutMapping("/owners/{id}")
    Owner change(@PathVariable long id, @RequestBody Map<String, Object> of) {
        return work.change(id, of);
    }

    @DeleteMapping("/owners/{id}")
    long remove(@PathVariable long id) {
        owners.deleteById(id);
        return pets.count() * 1000 + visits.count();
    }

    @PostMapping("/owners/{id}/pets")
    Pet addPet(@PathVariable long id, @RequestBody Map<String, String> of) {
        return work.addPet(id, of);
    }

    @PostMapping("/owners/{id}/fail")
    void fail(@PathVariable long id) {
        work.fail(id);
    }

    @PostMapping("/pets/{id}/visits")
    Visit addVisit(@PathVariable long id, @RequestBody Visit visit, @RequestParam(required = false) Long vet) {
        visit.pet = pets.getReferenceById(id);
        visit.vet = vet == null ? null : vets.getReferenceById(vet);
        return visits.save(visit);
    }

    @PostMapping("/pay")
    List<BigDecimal> pay(@RequestParam long from, @RequestParam long to, @RequestParam BigDecimal sum) {
        return work.pay(from, to, sum).stream().map(o -> o.balance).toList();
    }

    @PostMapping("/raise")
    int raise(@RequestParam String city) {
        return work.raiseCity(city);
    }

    @PostMapping("/vets")
    Vet addVet(@RequestParam String name, @RequestParam(defaultValue = "") List<String> in) {
        Vet vet = new Vet();
        vet.name = name;
        vet.specialties.addAll(specialties.findByNameIn(in));
        return vets.save(vet);
    }

    @GetMapping("/vets")
    List<Vet> vets(@RequestParam(defaultValue = "0") int least) {
        return vets.withSpecialties(least);
    }

    @GetMapping("/search")
    List<Object[]> search(@RequestParam String words) {
        return visits.search(words);
    }

    @DeleteMapping("/visits")
    @Transactional
    public long forget(@RequestParam LocalDate before) {
        return visits.deleteByDateBefore(before);
    }

    @GetMapping("/statistics")
    Map<String, Object> statistics() {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("by city", owners.byCity(0).stream().map(c -> c.getCity() + " " + c.getOwners() + " " + c.getBalance()).toList());
        all.put("ranks", owners.ranks());
        all.put("busy", owners.busy());
        all.put("kinds", pets.kinds());
        all.put("week", pets.week().stream().map(Arrays::toString).toList());
        all.put("born in 2020", pets.findByBirthDateBetweenOrderByBirthDateAscNameAsc(LocalDate.of(2020, 1, 1), LocalDate.of(2020, 12, 31)).stream().map(p -> p.name).toList());
        all.put("doses", visits.withDoses(2));
        return all;
    }
}
