package clinic;

import jakarta.persistence.LockModeType;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.*;
import org.springframework.data.domain.*;
import org.springframework.data.jpa.repository.*;
import org.springframework.data.repository.query.Param;

interface OwnerCount {
    String getCity();

    long getOwners();

    BigDecimal getBalance();
}

interface Owners extends JpaRepository<Owner, Long>, JpaSpecificationExecutor<Owner> {
    Page<Owner> findByLastNameStartingWithIgnoreCase(String prefix, Pageable page);

    Slice<Owner> findByCityIn(Collection<String> cities, Pageable page);

    boolean existsByTelephone(String telephone);

    Optional<Owner> findFirstByFullNameContainingOrderByIdDesc(String part);

    @EntityGraph(attributePaths = {"pets", "pets.type", "pets.visits"})
    Optional<Owner> findWithPetsById(Long id);

    @Lock(LockModeType.PESSIMISTIC_WRITE)
    @Query("select o from Owner o where o.id in :ids order by o.id")
    List<Owner> lock(@Param("ids") Collection<Long> ids);

    @Query("select o.city as city, count(o) as owners, sum(o.balance) as balance from Owner o group by o.city having count(o) > :least order by o.city nulls first")
    List<OwnerCount> byCity(@Param("least") long least);

    @Modifying(clearAutomatically = true)
    @Query("update Owner o set o.city = upper(o.city), o.version = o.version + 1 where o.city = :city")
    int raiseCity(@Param("city") String city);

    @Query(value = "select full_name, balance, rank() over (partition by city order by balance desc, id) as place, sum(balance) over (order by id) as so_far from owners order by id", nativeQuery = true)
    List<Object[]> ranks();

    @Query(value = "select id, full_name, pets from busy_owners order by pets desc, id", nativeQuery = true)
    List<Object[]> busy();
}

interface Pets extends JpaRepository<Pet, Long> {
    List<Pet> findByBirthDateBetweenOrderByBirthDateAscNameAsc(LocalDate from, LocalDate to);

    @Query("select p.type.name, p.mood, count(*) from Pet p group by p.type.name, p.mood order by p.type.name, p.mood")
    List<Object[]> kinds();

    @Query(value = "with recursive days as (select date '2024-01-01' as d union all select d + interval 1 day from days where d < '2024-01-07') "
        + "select d, (select count(*) from visits v where v.visit_date = d) as n from days", nativeQuery = true)
    List<Object[]> week();
}

interface Visits extends JpaRepository<Visit, Long> {
    @Query(value = "select id, description from visits where match (description) against (:words in boolean mode) order by id", nativeQuery = true)
    List<Object[]> search(@Param("words") String words);

    @Query(value = "select id, json_unquote(json_extract(details, '$.drug')) from visits where json_extract(details, '$.doses') > :doses order by id", nativeQuery = true)
    List<Object[]> withDoses(@Param("doses") int doses);

    long deleteByDateBefore(LocalDate date);
}

interface Vets extends JpaRepository<Vet, Long> {
    @Query("select v from Vet v where size(v.specialties) >= :n order by v.name")
    List<Vet> withSpecialties(@Param("n") int n);
}

interface Types extends JpaRepository<PetType, Integer> {
    Optional<PetType> findByName(String name);
}

interface Specialties extends JpaRepository<Specialty, Integer> {
    List<Specialty> findByNameIn(Collection<String> names);
}
